/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream/stage.h"

#include "settings/cycle.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct script *script_of(const fb_conn *conn)
{
    return fb_conf_of(conn);
}

static int proto_opened(fb_conn *conn, void *state)
{
    const struct script *script = script_of(conn);

    script->record->openings++;
    script->record->conn = conn;
    script->record->state = state;
    return script->opened != NULL ? script->opened(conn, state) : 0;
}

static size_t proto_data(fb_conn *conn, void *state, fb_bytes in)
{
    const struct script *script = script_of(conn);
    struct record *record = script->record;
    size_t n = in.n < sizeof(record->last) - 1 ? in.n : sizeof(record->last) - 1;

    record->datas++;
    memcpy(record->last, in.p, n);
    record->last[n] = '\0';
    return script->data != NULL ? script->data(conn, state, in) : in.n;
}

static void proto_eof(fb_conn *conn, void *state, fb_bytes rest)
{
    const struct script *script = script_of(conn);

    script->record->eofs++;
    if (script->eof != NULL)
        script->eof(conn, state, rest);
    else
        fb_close(conn);
}

static void proto_writable(fb_conn *conn, void *state)
{
    const struct script *script = script_of(conn);

    script->record->writables++;
    if (script->writable != NULL)
        script->writable(conn, state);
}

static void proto_closed(fb_conn *conn, void *state, fb_reason reason)
{
    const struct script *script = script_of(conn);

    script->record->closings++;
    script->record->reason = reason;
    if (script->closed != NULL)
        script->closed(conn, state, reason);
}

static const fb_ops proto_ops = {
    .size = sizeof(fb_ops),
    .opened = proto_opened,
    .data = proto_data,
    .eof = proto_eof,
    .writable = proto_writable,
    .closed = proto_closed,
};

static void set_up_server(struct stage *stage)
{
    stage->ops = proto_ops;
    stage->protocol = (fb_protocol) {
        FB_PROTOCOL_HEADER,
        .name = "proto",
        .conn_state = STAGE_STATE,
        .conf_state = sizeof(struct script),
        .ops = &stage->ops,
    };
    stage->script.record = &stage->record;
    stream_settings_defaults(&stage->server.settings);
    stage->server.protocol = &stage->protocol;
    stage->server.protocol_index = 3;
    stage->server.protocol_conf = &stage->script;
    stage->binding.server = &stage->server;
    ck_assert_ptr_null(address_parse("192.0.2.7:77", 0, &stage->binding.address));
    address_format(&stage->binding.address, true, stage->binding.text);
    STAILQ_INIT(&stage->port.bindings);
    STAILQ_INSERT_TAIL(&stage->port.bindings, &stage->binding, link);
}

struct stage *stage_set_up(uint32_t n)
{
    return stage_with(&fake_edge, n);
}

struct stage *stage_with(const struct mechanism *mechanism, uint32_t n)
{
    struct stage *stage = calloc(1, sizeof(*stage));
    struct net_options options = {
        .connections_max = n,
        .mechanism = mechanism,
        .mechanism_option = mechanism->option.initial,
        .lingering_timeout = 5000,
    };

    ck_assert_ptr_nonnull(stage);
    fake_start();
    stage->target.fd = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ne(stage->target.fd, -1);
    stage->target.level = LEVEL_INFO;
    log_init(&stage->log, &stage->target, 1);
    stage->log.plain = "t";
    stage->shared = shared_create();
    ck_assert_ptr_nonnull(stage->shared);
    ck_assert(slot_acquire(stage->shared, &stage->slot));
    options.log = &stage->log;
    options.counters = &stage->shared->slots[stage->slot.slot].counters;
    ck_assert_int_eq(stream_init(&stage->worker.stream, &options, stage->shared, NULL, 0), 0);
    set_up_server(stage);
    return stage;
}

const char *stage_logged(struct stage *stage)
{
    ssize_t n = pread(stage->target.fd, stage->text, sizeof(stage->text) - 1, 0);

    ck_assert_int_ge(n, 0);
    stage->text[n] = '\0';
    ck_assert_int_eq(ftruncate(stage->target.fd, 0), 0);
    ck_assert_int_eq(lseek(stage->target.fd, 0, SEEK_SET), 0);
    return stage->text;
}

void stage_end(struct stage *stage)
{
    net_fail_all(&stage->worker.stream.net, FB_DRAINED);
    stage_logged(stage);
}

void stage_tear_down(struct stage *stage)
{
    uint64_t totals[COUNTERS];

    stage_run(stage);
    ck_assert_str_eq(stage_logged(stage), "");
    ck_assert_uint_eq(stage->record.openings, stage->record.closings);
    shared_totals(stage->shared, totals);
    for (int i = COUNTER_GAUGES; i < COUNTERS; i++)
        ck_assert_uint_eq(totals[i], 0);
    stream_done(&stage->worker.stream);
    shared_destroy(&stage->shared);
    fake_stop();
    close(stage->target.fd);
    free(stage);
}

struct fake_socket *stage_connect(struct stage *stage)
{
    return stage_connect_slow(stage, SIZE_MAX);
}

struct fake_socket *stage_connect_slow(struct stage *stage, size_t room)
{
    struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(1234) };
    struct fake_socket *socket = fake_connection();

    fake_take(socket, room);
    peer.sin_addr.s_addr = inet_addr("192.0.2.1");
    ck_assert_ptr_nonnull(
        session_start(&stage->worker.stream, &stage->port, socket->fd, (struct sockaddr *)&peer));
    stage_run(stage);
    return socket;
}

void stage_run(struct stage *stage)
{
    struct loop *loop = &stage->worker.stream.net.loop;
    unsigned turns = 0;

    do {
        loop_promote(loop);
        loop_wait(loop, 0);
        timers_expire(loop);
        loop_run(loop, QUEUE_NORMAL);
        stream_check(&stage->worker.stream);
        test_require(++turns < 10000); /* it does not spin */
    } while (fake_reported() > 0 || !TAILQ_EMPTY(&loop->queues[QUEUE_NEXT]));
}

void stage_pass(struct stage *stage, uint64_t ms)
{
    fake_pass(ms);
    stage_run(stage);
}

const char *stage_sent(const struct fake_socket *socket)
{
    return socket->sent != NULL ? (const char *)socket->sent : "";
}

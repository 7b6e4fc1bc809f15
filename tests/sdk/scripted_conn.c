/* SPDX-License-Identifier: BSD-2-Clause */
/* The protocol of scripted connections: client states point to their struct, states of connections
 * to servers are the struct. */
#include "sdk/scripted_conn.h"
#include "session/stream.h"

#include <stdio.h>
#include <string.h>

char ended[ENDED_MAX];
static struct scripted_conn *coming; /* the next client's */

static int common_opened(fb_conn *conn, struct scripted_conn *script)
{
    test_require(script->conn == NULL || script->conn == conn);
    script->conn = conn;
    script->openings++;
    return script->opened != NULL ? script->opened(script) : 0;
}

static void remember_input(struct scripted_conn *script, fb_bytes in)
{
    size_t n = in.n < sizeof(script->last) - 1 ? in.n : sizeof(script->last) - 1;

    if (n > 0)
        memcpy(script->last, in.p, n);
    script->last[n] = '\0';
    script->last_n = in.n;
}

static size_t common_data(struct scripted_conn *script, fb_bytes in)
{
    test_require(in.n > 0 && script->eofs == 0 && script->openings == 1);
    script->datas++;
    remember_input(script, in);
    return script->data != NULL ? script->data(script, in) : in.n;
}

static void common_eof(struct scripted_conn *script, fb_bytes rest)
{
    script->eofs++;
    remember_input(script, rest);
    if (script->eof != NULL)
        script->eof(script, rest);
    else
        fb_close(script->conn);
}

static void common_writable(struct scripted_conn *script)
{
    script->writables++;
    if (script->writable != NULL)
        script->writable(script);
}

static void common_unwritable(struct scripted_conn *script)
{
    script->unwritables++;
    if (script->unwritable != NULL)
        script->unwritable(script);
}

static void common_timer(struct scripted_conn *script, uint32_t id)
{
    script->timers++;
    script->timer_id = id;
    if (script->timer != NULL)
        script->timer(script, id);
}

static void common_draining(struct scripted_conn *script, uint64_t deadline)
{
    script->drainings++;
    script->deadline = deadline;
    if (script->draining != NULL)
        script->draining(script, deadline);
}

static int common_message(struct scripted_conn *script, fb_ref from, fb_bytes message)
{
    script->messages++;
    script->from = from;
    remember_input(script, message);
    return script->message != NULL ? script->message(script, from, message) : 0;
}

static void common_answered(struct scripted_conn *script, uint64_t number, fb_outcome outcome)
{
    script->answers++;
    script->number = number;
    script->outcome = outcome;
    if (script->answered != NULL)
        script->answered(script, number, outcome);
}

static void common_closed(struct scripted_conn *script, fb_reason reason)
{
    size_t n = strlen(ended);

    script->closings++;
    script->reason = reason;
    if (script->letter != 0 && n + 1 < ENDED_MAX)
        ended[n] = script->letter;
    if (script->closed != NULL)
        script->closed(script, reason);
    script->conn = NULL;
}

/* Clients, with a pointer as their state */

static struct scripted_conn *conn_at(void *state)
{
    struct scripted_conn *script = *(struct scripted_conn **)state;

    test_require(script != NULL);
    return script;
}

static int client_opened(fb_conn *conn, void *state)
{
    static struct scripted_conn crowd; /* state of clients not looked at by any test */
    struct scripted_conn *script = coming != NULL ? coming : &crowd;

    coming = NULL;
    *(struct scripted_conn **)state = script;
    if (script == &crowd)
        crowd = (struct scripted_conn) { .conn = conn };
    return common_opened(conn, script);
}

static size_t client_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)conn;
    return common_data(conn_at(state), in);
}

static void client_eof(fb_conn *conn, void *state, fb_bytes rest)
{
    (void)conn;
    common_eof(conn_at(state), rest);
}

static void client_writable(fb_conn *conn, void *state)
{
    (void)conn;
    common_writable(conn_at(state));
}

static void client_unwritable(fb_conn *conn, void *state)
{
    (void)conn;
    common_unwritable(conn_at(state));
}

static void client_timer(fb_conn *conn, void *state, uint32_t id)
{
    (void)conn;
    common_timer(conn_at(state), id);
}

static void client_draining(fb_conn *conn, void *state, uint64_t deadline)
{
    (void)conn;
    common_draining(conn_at(state), deadline);
}

static int client_message(fb_conn *conn, void *state, fb_ref from, fb_bytes message)
{
    (void)conn;
    return common_message(conn_at(state), from, message);
}

static void client_answered(fb_conn *conn, void *state, uint64_t number, fb_outcome outcome)
{
    (void)conn;
    common_answered(conn_at(state), number, outcome);
}

static void client_closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)conn;
    common_closed(conn_at(state), reason);
}

static const fb_ops client_ops = {
    .size = sizeof(fb_ops),
    .opened = client_opened,
    .data = client_data,
    .eof = client_eof,
    .writable = client_writable,
    .timer = client_timer,
    .draining = client_draining,
    .message = client_message,
    .answered = client_answered,
    .closed = client_closed,
    .unwritable = client_unwritable,
};

/* Connections to servers, with the struct as state */

static int server_opened(fb_conn *conn, void *state)
{
    return common_opened(conn, state);
}

static size_t server_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)conn;
    return common_data(state, in);
}

static void server_eof(fb_conn *conn, void *state, fb_bytes rest)
{
    (void)conn;
    common_eof(state, rest);
}

static void server_writable(fb_conn *conn, void *state)
{
    (void)conn;
    common_writable(state);
}

static void server_unwritable(fb_conn *conn, void *state)
{
    (void)conn;
    common_unwritable(state);
}

static void server_timer(fb_conn *conn, void *state, uint32_t id)
{
    (void)conn;
    common_timer(state, id);
}

static void server_draining(fb_conn *conn, void *state, uint64_t deadline)
{
    (void)conn;
    common_draining(state, deadline);
}

static int server_message(fb_conn *conn, void *state, fb_ref from, fb_bytes message)
{
    (void)conn;
    return common_message(state, from, message);
}

static void server_closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)conn;
    common_closed(state, reason);
}

#define SERVER_OPS                                                                                 \
    .size = sizeof(fb_ops), .opened = server_opened, .data = server_data, .eof = server_eof,       \
    .writable = server_writable, .timer = server_timer, .draining = server_draining,               \
    .message = server_message, .closed = server_closed, .unwritable = server_unwritable

const fb_ops scripted_conn_ops = { SERVER_OPS }, scripted_conn_other_ops = { SERVER_OPS };

static const fb_directive directives[] = {
    { .name = "scripted", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(scripted) = {
    FB_PROTOCOL_HEADER,
    .name = "scripted",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct scripted_conn *),
    .ops = &client_ops,
};

/* Tests */

fb_test *scripted_start_with(const char *others)
{
    char server[256];
    fb_test *test;

    snprintf(server, sizeof(server), "scripted; first_byte_timeout off; %s", others);
    test = fb_test_start(&fb_protocol_scripted, server);
    ck_assert_ptr_nonnull(test);
    memset(ended, 0, sizeof(ended));
    return test;
}

fb_test *scripted_start(void)
{
    return scripted_start_with("");
}

void scripted_share_blocks(fb_test *test)
{
    struct net *net = &test->workers->worker.stream.net;

    net->chunks.exact = false;
    ((struct memory *)net->memory)->spares = 64;
}

void scripted_finish(fb_test **test)
{
    ck_assert_int_eq(fb_test_end(test), 0);
}

void scripted_settle(fb_test *test)
{
    net_flush(&test->workers->worker.stream.net);
    fb_test_run(test);
    session_check_all(&test->workers->worker.stream);
}

fb_test_peer *scripted_conn_open(fb_test *test, struct scripted_conn *script)
{
    fb_test_peer *peer = fb_test_connect(test);

    coming = script;
    fb_test_run(test);
    session_check_all(&test->workers->worker.stream);
    ck_assert_ptr_null(coming);
    return peer;
}

fb_test *scripted_start_client(
    const char *others, struct scripted_conn *script, fb_test_peer **peer)
{
    fb_test *test = scripted_start_with(others);

    *script = (struct scripted_conn) { .eof = scripted_ignore_eof };
    *peer = scripted_conn_open(test, script);
    return test;
}

fb_conn *scripted_conn_begin(
    struct scripted_conn *owner, struct scripted_conn *script, const char *address)
{
    const fb_target *target = fb_make_target(owner->conn, address);

    ck_assert_ptr_nonnull(target);
    script->conn = fb_connect(owner->conn, target, &scripted_conn_ops, script);
    return script->conn;
}

fb_test_peer *scripted_conn_connect(
    fb_test *test, struct scripted_conn *owner, struct scripted_conn *script)
{
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);

    ck_assert_ptr_nonnull(scripted_conn_begin(owner, script, SERVER));
    scripted_settle(test);
    return fb_test_accept(server);
}

const char *peer_heard(fb_test_peer *peer)
{
    return (const char *)fb_test_heard(peer).p;
}

size_t scripted_leave_input(struct scripted_conn *script, fb_bytes in)
{
    (void)script;
    (void)in;
    return 0;
}

void scripted_ignore_eof(struct scripted_conn *script, fb_bytes rest)
{
    (void)script;
    (void)rest;
}

uint64_t mono_ms(fb_test *test)
{
    return fb_mono_ms(fb_test_worker(test));
}

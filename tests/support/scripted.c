/* SPDX-License-Identifier: BSD-2-Clause */
/* The scripted protocol: keeps its script in the place of a configuration. */
#include "support/scripted.h"

#include "net/address_parse.h"
#include "session/session.h"
#include "support/fixture.h"

#include <arpa/inet.h>
#include <string.h>

static const struct scripted_calls *script_of(const fb_conn *conn)
{
    return fb_conf_of(conn);
}

static int record_opened(fb_conn *conn, void *state)
{
    const struct scripted_calls *script = script_of(conn);

    script->record->openings++;
    script->record->conn = conn;
    script->record->state = state;
    return script->opened != NULL ? script->opened(conn, state) : 0;
}

static size_t record_data(fb_conn *conn, void *state, fb_bytes in)
{
    const struct scripted_calls *script = script_of(conn);
    struct scripted_record *record = script->record;
    size_t n = in.n < sizeof(record->last) - 1 ? in.n : sizeof(record->last) - 1;

    record->datas++;
    memcpy(record->last, in.p, n);
    record->last[n] = '\0';
    return script->data != NULL ? script->data(conn, state, in) : in.n;
}

static void record_eof(fb_conn *conn, void *state, fb_bytes rest)
{
    const struct scripted_calls *script = script_of(conn);

    script->record->eofs++;
    if (script->eof != NULL)
        script->eof(conn, state, rest);
    else
        fb_close(conn);
}

static void record_writable(fb_conn *conn, void *state)
{
    const struct scripted_calls *script = script_of(conn);

    script->record->writables++;
    if (script->writable != NULL)
        script->writable(conn, state);
}

static void record_closed(fb_conn *conn, void *state, fb_reason reason)
{
    const struct scripted_calls *script = script_of(conn);

    script->record->closings++;
    script->record->reason = reason;
    if (script->closed != NULL)
        script->closed(conn, state, reason);
}

static const fb_ops recording_ops = {
    .size = sizeof(fb_ops),
    .opened = record_opened,
    .data = record_data,
    .eof = record_eof,
    .writable = record_writable,
    .closed = record_closed,
};

void scripted_server_init(struct scripted_server *server, const char *address)
{
    server->ops = recording_ops;
    server->protocol = (fb_protocol) {
        FB_PROTOCOL_HEADER,
        .name = "scripted",
        .conn_state = SCRIPTED_STATE,
        .conf_state = sizeof(struct scripted_calls),
        .ops = &server->ops,
    };
    server->script.record = &server->record;
    server->server.protocol = &server->protocol;
    server->server.protocol_index = 3;
    server->server.protocol_conf = &server->script;
    server->binding.kind = BINDING_KIND;
    server->binding.server = &server->server;
    server->binding.ops = &session_conn_ops;
    ck_assert_ptr_null(address_parse(address, 0, &server->binding.address));
    address_format(&server->binding.address, true, server->binding.text);
    server->port.kind = PORT_KIND;
    STAILQ_INIT(&server->port.bindings);
    STAILQ_INSERT_TAIL(&server->port.bindings, &server->binding, link);
}

size_t scripted_echo(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    fb_write(conn, in.p, in.n);
    return in.n;
}

int scripted_stop(fb_conn *conn, void *state)
{
    (void)state;
    fb_stop(conn);
    return 0;
}

struct sim_socket *scripted_connect(struct fixture *fixture)
{
    return scripted_connect_slow(fixture, SIZE_MAX);
}

struct sim_socket *scripted_connect_slow(struct fixture *fixture, size_t room)
{
    struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(1234) };
    struct sim_socket *socket = sim_connection(fixture->sim);
    struct fb_conn *conn;

    sim_set_room(socket, room);
    peer.sin_addr.s_addr = inet_addr("192.0.2.1");
    conn = session_accept(
        fixture->stream, &fixture->server.port, socket->fd, (struct sockaddr *)&peer);
    ck_assert_ptr_nonnull(conn);
    conn_open_soon(conn);
    fixture_run(fixture);
    return socket;
}

void scripted_end_sessions(struct fixture *fixture)
{
    fixture_end_all(fixture);
    fixture_logged(fixture);
}

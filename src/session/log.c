/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats the lines. The first line names client and server, so that the text form adds no context,
 * as in nginx; the line of the end has the context.
 *
 * Never changes a session. Bytes of servers are the bytes of all connections made for the
 * session, ended before or with the session. */
#include "session/log.h"

#include "session/end.h"
#include "session/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static const char *const reasons[] = {
    [FB_FINISHED] = "finished",
    [FB_PEER_GONE] = "the client closed",
    [FB_RESET] = "the client broke the connection",
    [FB_TIMED_OUT] = "timed out",
    [FB_INPUT_LIMIT] = "too much input that the protocol does not consume",
    [FB_ABORTED] = "aborted by the protocol",
    [FB_DRAINED] = "the worker ends",
    [FB_REFUSED] = "refused by the protocol",
    [FB_NO_MEMORY] = "no memory",
    [FB_IO_ERROR] = "connection error",
    [FB_BAD_FRAME] = "malformed input",
    [FB_OUTPUT_LIMIT] = "too much output that the client does not take",
    [FB_PIPE_BROKEN] = "the other connection of its pipe broke",
    [FB_TLS_FAILED] = "the TLS handshake failed",
    [FB_TLS_TIMED_OUT] = "the TLS handshake timed out",
};

void session_log_put(struct log *log, const struct log_line *line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vput(log, line, format, args);
    va_end(args);
}

void session_log_start(const struct fb_conn *conn)
{
    char client[ADDRESS_TEXT], whole[ADDRESS_TEXT];
    struct log_line line = { .level = LEVEL_INFO, .named = true };
    struct address peer;

    assert(!conn->outgoing && conn_logs(conn, LEVEL_INFO));
    conn_log_line(conn, &line, client);
    conn_peer_address(conn, &peer);
    session_log_put(conn->net->log, &line, "client %s connected to %s",
        address_format(&peer, true, whole), session_binding_of(conn)->text);
}

void session_log_connected(const struct fb_conn *client, const struct fb_conn *server)
{
    char text[ADDRESS_TEXT], local[ADDRESS_TEXT] = "?";
    struct log_line line = { .level = LEVEL_INFO, .named = true };
    struct address address = { .length = sizeof(address.un) };

    assert(!client->outgoing && server->outgoing);
    conn_log_line(client, &line, text);
    if (server->source.io->name(&server->source, &address.any, &address.length) == 0)
        address_format(&address, true, local);
    session_log_put(client->net->log, &line, "proxy %s connected to %s", local,
        session_target_of(server->session)->text);
}

/* Names the reason of the end; last: the end by the last try. */
static const char *reason_of_end(
    const struct fb_conn *conn, fb_reason reason, enum session_end last)
{
    const struct session_conn *session = conn->session;

    if (session != NULL && session->end == SESSION_END_LIFETIME)
        return "its lifetime is over";
    if (session != NULL && session->end == SESSION_END_DROPPED)
        return "its server is not to be used";
    if (last == SESSION_END_UPSTREAM_RESET && (reason == FB_FINISHED || reason == FB_PIPE_BROKEN))
        return "the server broke the connection";
    return reasons[reason];
}

static void log_client_end(const struct fb_conn *conn, fb_reason reason)
{
    const struct session_record *record = session_record_of(conn);
    enum session_end last = session_end_of_tries(conn);
    bool by_server = last == SESSION_END_UPSTREAM_EOF || last == SESSION_END_UPSTREAM_RESET;
    uint64_t ms = conn->net->loop.clock.mono_ms - conn->opened_ms;
    char servers[96] = "", client[ADDRESS_TEXT];
    struct log_line line = { .level = LEVEL_INFO };

    if (reason == FB_TIMED_OUT && session_tries_of(conn) != NULL)
        conn_log(conn, LEVEL_INFO, ETIMEDOUT, "connection timed out");
    conn_log_line(conn, &line, client);
    line.action = line.relay.action = line.upstream = NULL; /* the message has the bytes */
    if (record != NULL && record->server_n > 0)
        snprintf(servers, sizeof(servers), ", bytes from/to upstream:%" PRIu64 "/%" PRIu64,
            record->from_servers, record->to_servers);
    session_log_put(conn->net->log, &line,
        "%s disconnected, bytes from/to client:%" PRIu64 "/%" PRIu64 "%s, session time: %" PRIu64
        ".%03u, reason: %s",
        by_server ? "upstream" : "client", conn->received, conn->sent, servers, ms / 1000,
        (unsigned)(ms % 1000), reason_of_end(conn, reason, last));
}

void session_log_end(const struct fb_conn *conn, fb_reason reason)
{
    assert(reason >= FB_FINISHED && reason < (fb_reason)countof(reasons));
    if (conn->outgoing)
        conn_debug(conn, "connection to server ended: %s", reasons[reason]);
    else
        log_client_end(conn, reason);
}

static void put_stall(struct log *log, const struct log_line *line,
    const struct heartbeat_stall *stall, const char *protocol)
{
    session_log_put(log, line,
        "callback \"%s\" of protocol \"%s\" took %" PRIu64 " ms, and blocked the worker",
        heartbeat_stall_name(stall), protocol, stall->us / 1000);
}

void session_log_stall(const struct fb_conn *conn)
{
    struct heartbeat_stall stall = heartbeat_take_stall(conn->net->heartbeat);
    struct log_line line = { .level = LEVEL_WARN };
    char client[ADDRESS_TEXT];

    if (!conn_logs(conn, LEVEL_WARN))
        return;
    conn_log_line(conn, &line, client);
    put_stall(conn->net->log, &line, &stall, session_server_of(conn)->protocol->name);
}

void session_log_other_stall(
    struct log *log, const struct heartbeat_stall *stall, const char *protocol)
{
    struct log_line line = { .level = LEVEL_WARN };

    if (LEVEL_WARN <= log->level)
        put_stall(log, &line, stall, protocol);
}

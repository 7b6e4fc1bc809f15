/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats the lines. The first names client and server itself, so that the text form adds no
 * context, as nginx's does not; that of the end has it.
 *
 * Never changes a session. Bytes of servers are those of all connections that were made for the
 * session, whether or not they have ended with it. */
#include "stream/session_log.h"

#include "stream/session_conn.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
};

static bool is_wanted(const struct fb_conn *conn, enum log_level level)
{
    return level <= conn->net->log->level || conn->debug;
}

static void PRINTF_FORMAT(2, 3) put_start(const struct fb_conn *conn, const char *format, ...)
{
    char client[ADDRESS_TEXT];
    struct address peer;
    struct log_line line = {
        .level = LEVEL_INFO, .connection = conn->number, .force = conn->debug, .named = true
    };
    va_list args;

    conn_peer_address(conn, &peer);
    line.client = address_format(&peer, false, client);
    conn->ops->describe(conn, &line, client);
    va_start(args, format);
    log_vput(conn->net->log, &line, format, args);
    va_end(args);
}

void session_log_start(const struct fb_conn *conn)
{
    char client[ADDRESS_TEXT];
    struct address peer;

    assert(!conn->outgoing);
    if (!is_wanted(conn, LEVEL_INFO))
        return;
    conn_peer_address(conn, &peer);
    put_start(conn, "client %s connected to %s", address_format(&peer, true, client),
        session_binding_of(conn)->text);
}

static void log_client_end(const struct fb_conn *conn, const char *reason)
{
    const struct session_conn *session = session_conn_of(conn);
    uint64_t ms = conn->net->loop.clock.mono_ms - conn->opened_ms;
    char servers[96] = "";

    if (session != NULL && session->server_n > 0)
        snprintf(servers, sizeof(servers), ", bytes from/to upstream:%" PRIu64 "/%" PRIu64,
            session->from_servers, session->to_servers);
    conn_log(conn, LEVEL_INFO, 0,
        "client disconnected, bytes from/to client:%" PRIu64 "/%" PRIu64
        "%s, session time: %" PRIu64 ".%03u, reason: %s",
        conn->received, conn->sent, servers, ms / 1000, (unsigned)(ms % 1000), reason);
}

void session_log_end(const struct fb_conn *conn, fb_reason reason)
{
    assert(reason >= FB_FINISHED && reason < (fb_reason)countof(reasons));
    if (conn->outgoing)
        conn_debug(conn, "connection to server ended: %s", reasons[reason]);
    else if (is_wanted(conn, LEVEL_INFO))
        log_client_end(conn, reasons[reason]);
}

void session_log_stall(const struct fb_conn *conn)
{
    struct heartbeat_stall stall = heartbeat_take_stall(conn->net->heartbeat);

    conn_log(conn, LEVEL_WARN, 0,
        "callback \"%s\" of protocol \"%s\" took %" PRIu64
        " ms, in which this worker did nothing else",
        heartbeat_stall_name(&stall), session_server_of(conn)->protocol->name, stall.us / 1000);
}

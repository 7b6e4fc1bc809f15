/* SPDX-License-Identifier: BSD-2-Clause */
/* A session: what happens on a connection is given to its server's protocol, within the server's
 * time limits. */
#include "stream/session.h"

#include <errno.h>
#include <stdio.h>

#define INPUT_LIMIT 65536

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

static const struct fb_server *server_of(const struct fb_conn *conn)
{
    const struct fb_binding *binding = conn->owner;

    return binding->server;
}

/* Whether its protocol knows of it: there is one, and there was memory for its state. */
static bool is_served(const struct fb_conn *conn)
{
    const fb_protocol *protocol = server_of(conn)->protocol;

    return protocol != NULL && (protocol->conn_state == 0 || conn->state != NULL);
}

static void wait_at_most(struct fb_conn *conn, int64_t ms)
{
    if (ms > 0)
        fb_timer_set(&conn->net->loop, &conn->timer, (uint64_t)ms);
    else
        fb_timer_del(&conn->net->loop, &conn->timer);
}

static void session_opened(struct fb_conn *conn)
{
    const struct fb_server *server = server_of(conn);
    const fb_protocol *protocol = server->protocol;

    if (protocol == NULL) {
        fb_conn_close(conn);
        return;
    }
    fb_conn_debug(conn, "opened for \"%s\"", protocol->name);
    if (!fb_session_state(conn, server)) {
        fb_conn_log(conn, FB_CRIT, errno, "no memory for the state of \"%s\"", protocol->name);
        fb_conn_fail(conn, FB_NO_MEMORY);
        return;
    }
    conn->heard = server->settings.first_byte_timeout == 0;
    wait_at_most(
        conn, conn->heard ? server->settings.idle_timeout : server->settings.first_byte_timeout);
    if (protocol->ops->opened != NULL && protocol->ops->opened(conn, conn->state) != 0)
        fb_conn_fail(conn, FB_REFUSED);
}

static size_t session_data(struct fb_conn *conn, fb_bytes in)
{
    const struct fb_server *server = server_of(conn);
    const fb_protocol *protocol = server->protocol;
    size_t limit = protocol->input_limit > 0 ? protocol->input_limit : INPUT_LIMIT;
    size_t used = in.n;

    if (!conn->heard) { /* the first byte's deadline may lie near enough to be kept by mistake */
        conn->heard = 1;
        fb_timer_del(&conn->net->loop, &conn->timer);
    }
    wait_at_most(conn, server->settings.idle_timeout);
    if (protocol->ops->data != NULL)
        used = protocol->ops->data(conn, conn->state, in);
    if (used > in.n) {
        fb_conn_log(
            conn, FB_ALERT, 0, "\"%s\" consumed %zu bytes of %zu", protocol->name, used, in.n);
        fb_conn_fail(conn, FB_ABORTED);
        return in.n;
    }
    if (in.n - used >= limit && !conn->stopped)
        fb_conn_fail(conn, FB_INPUT_LIMIT);
    return used;
}

static void session_eof(struct fb_conn *conn, fb_bytes rest)
{
    const fb_protocol *protocol = server_of(conn)->protocol;

    if (protocol->ops->eof != NULL)
        protocol->ops->eof(conn, conn->state, rest);
    else
        fb_conn_close(conn);
}

static void session_writable(struct fb_conn *conn)
{
    const fb_protocol *protocol = server_of(conn)->protocol;

    if (protocol->ops->writable != NULL)
        protocol->ops->writable(conn, conn->state);
}

/* Who takes output is not idle, but has still to say its first byte. */
static void session_moved(struct fb_conn *conn)
{
    if (conn->heard || conn->closing)
        wait_at_most(conn, server_of(conn)->settings.idle_timeout);
}

static void session_expired(struct fb_conn *conn)
{
    fb_conn_log(conn, FB_INFO, ETIMEDOUT, "client timed out");
    fb_conn_fail(conn, FB_TIMED_OUT);
}

static void session_closed(struct fb_conn *conn, fb_reason reason)
{
    const fb_protocol *protocol = server_of(conn)->protocol;

    fb_conn_log(conn, FB_INFO, 0, "session ended: %s", reasons[reason]);
    if (is_served(conn) && protocol->ops->closed != NULL)
        protocol->ops->closed(conn, conn->state, reason);
}

static size_t session_describe(const struct fb_conn *conn, char *text, size_t size)
{
    const struct fb_binding *binding = conn->owner;

    return (size_t)snprintf(text, size, ", server: %s", binding->text);
}

const struct fb_conn_ops fb_session_ops = {
    .opened = session_opened,
    .data = session_data,
    .eof = session_eof,
    .writable = session_writable,
    .moved = session_moved,
    .expired = session_expired,
    .closed = session_closed,
    .describe = session_describe,
};

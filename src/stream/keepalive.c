/* SPDX-License-Identifier: BSD-2-Clause */
/* Open connections to servers between two owners. Responsible for ending one when anything happens
 * on it. Never connects. Invariant: the list holds what is in SESSION_KEPT, latest use in front. */
#include "stream/keepalive.h"

#include "net/target.h"
#include "stream/session_call.h"

/* The callbacks of a kept connection: whatever happens on it ends it. */

static void kept_opened(struct fb_conn *conn)
{
    (void)conn;
}

static size_t kept_data(struct fb_conn *conn, fb_bytes in)
{
    fb_conn_log(conn, FB_INFO, 0, "a kept connection has received %zu bytes, it is closed", in.n);
    fb_conn_fail(conn, FB_ABORTED);
    return in.n;
}

static void kept_eof(struct fb_conn *conn, fb_bytes rest)
{
    (void)rest;
    fb_conn_close(conn);
}

static void kept_nothing(struct fb_conn *conn)
{
    (void)conn;
}

static void kept_closed(struct fb_conn *conn, fb_reason reason)
{
    (void)reason;
    assert(fb_session_is_kept(conn));
    TAILQ_REMOVE(&fb_stream_of(conn)->kept, fb_side_of(conn), sibling);
    session_set_phase(conn, SESSION_ENDED);
    fb_side_free(conn);
}

static void kept_describe(
    const struct fb_conn *conn, struct fb_log_line *line, char client[FB_ADDRESS_TEXT])
{
    const struct fb_side *session = fb_side_of(conn);

    (void)client;
    if (session != NULL && session->target != NULL) /* none once it has been closed and lingers */
        line->upstream = session->target->text;
}

static const struct fb_conn_ops kept_ops = {
    .opened = kept_opened,
    .data = kept_data,
    .eof = kept_eof,
    .writable = kept_nothing,
    .moved = kept_nothing,
    .expired = fb_conn_close,
    .closed = kept_closed,
    .describe = kept_describe,
};

bool keepalive_has(const struct fb_conn *conn)
{
    return conn->ops == &kept_ops;
}

void fb_session_keep(struct fb_conn *conn, uint64_t ms)
{
    if (conn->outgoing)
        fb_side_of(conn)->keep_ms = ms > 0 ? ms : 1;
    if (conn->outgoing && !fb_stream_of(conn)->draining)
        fb_conn_keep(conn);
    else
        fb_conn_close(conn);
}

/* Copies the target, which may have been in memory of the last owner; NULL without memory. */
static struct fb_target *copy_target(struct fb_conn *conn, const struct fb_target *target)
{
    struct fb_target *copy = fb_net_alloc(conn->net, &fb_side_of(conn)->lasting, sizeof(*copy));

    if (copy != NULL)
        *copy = *target;
    return copy;
}

bool keepalive_put(struct fb_conn *conn)
{
    struct fb_stream *stream = fb_stream_of(conn);
    struct fb_side *session = fb_side_of(conn);
    struct fb_target target = *session->target;

    assert(conn->outgoing && conn->phase == CONN_KEEPING && conn->in == NULL);
    fb_session_end_children(session);
    fb_session_ended(conn, session->ops, FB_FINISHED);
    fb_side_clear(session);
    session->target = copy_target(conn, &target);
    session_set_phase(conn, SESSION_KEPT);
    conn->ops = &kept_ops;
    conn->state = NULL;
    conn->idle = 0;
    TAILQ_INSERT_HEAD(&stream->kept, session, sibling);
    if (session->target == NULL || stream->draining)
        return false;
    fb_timer_del(&conn->net->loop, &conn->timer);
    fb_timer_set(&conn->net->loop, &conn->timer, session->keep_ms);
    return true;
}

/* Whether nothing has happened on the connection that its callbacks have not been told yet. */
static bool is_sound(const struct fb_conn *conn)
{
    return conn_is_active(conn) && !conn->source.events[FB_READ].ready;
}

/* Finds the connection that was used last: its server is the least likely to close it just now. */
static struct fb_side *find_kept(
    struct fb_stream *stream, const struct fb_target *target, const fb_ops *ops)
{
    struct fb_side *session;

    TAILQ_FOREACH (session, &stream->kept, sibling) {
        CHECK_KIND(session, SESSION_CONN_KIND);
        if (session->ops == ops && is_sound(session->conn) &&
            fb_address_equal(&session->target->address, &target->address))
            return session;
    }
    return NULL;
}

struct fb_conn *keepalive_get(
    struct fb_stream *stream, const struct fb_target *target, const fb_ops *ops)
{
    struct fb_side *session = find_kept(stream, target, ops);
    struct fb_conn *conn;

    if (session == NULL)
        return NULL;
    conn = session->conn;
    assert(fb_session_is_kept(conn) && keepalive_has(conn) && session->parent == NULL);
    TAILQ_REMOVE(&stream->kept, session, sibling);
    fb_timer_del(&conn->net->loop, &conn->timer);
    session_set_phase(conn, SESSION_NEW);
    session->reused = true;
    return conn;
}

bool fb_stream_drop_kept(struct fb_stream *stream)
{
    struct fb_side *session = TAILQ_LAST(&stream->kept, fb_kept);

    if (session == NULL)
        return false;
    assert(fb_session_is_kept(session->conn));
    fb_conn_end(session->conn, FB_ABORTED);
    return true;
}

void fb_stream_close_kept(struct fb_stream *stream)
{
    struct fb_side *session;

    TAILQ_FOREACH (session, &stream->kept, sibling)
        fb_conn_close(session->conn);
    fb_net_settle(&stream->net);
}

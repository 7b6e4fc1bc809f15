/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers: made for a client's session, and kept between sessions. */
#include "net/target.h"
#include "stream/session.h"
#include "stream/side.h"

#include <stdio.h>

#define CONNECT_TIMEOUT_MS 60000

/* A kept connection has no user: whatever happens on it ends it. */

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
    TAILQ_REMOVE(&fb_stream_of(conn)->kept, fb_side_of(conn), sibling);
    fb_side_free(conn);
}

static void kept_describe(
    const struct fb_conn *conn, struct fb_log_line *line, char client[FB_ADDRESS_TEXT])
{
    const struct fb_side *side = fb_side_of(conn);

    (void)client;
    if (side != NULL) /* once it is closed, and only listened to, there is none */
        line->upstream = side->target->text;
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

void fb_session_keep(struct fb_conn *conn, uint64_t ms)
{
    if (conn->outgoing)
        fb_side_of(conn)->keep_ms = ms > 0 ? ms : 1;
    if (conn->outgoing && !fb_stream_of(conn)->draining)
        fb_conn_keep(conn);
    else
        fb_conn_close(conn);
}

/* The target may have been in memory of who used it. */
static struct fb_target *copy_target(struct fb_conn *conn, const struct fb_target *target)
{
    struct fb_target *copy = fb_net_alloc(conn->net, &fb_side_of(conn)->lasting, sizeof(*copy));

    if (copy != NULL)
        *copy = *target;
    return copy;
}

void fb_session_kept(struct fb_conn *conn)
{
    struct fb_stream *stream = fb_stream_of(conn);
    struct fb_side *side = fb_side_of(conn);
    struct fb_target target = *side->target;

    fb_session_end_children(side);
    fb_session_ended(conn, side->ops, FB_FINISHED);
    fb_side_clear(side);
    side->target = copy_target(conn, &target);
    conn->ops = &kept_ops;
    conn->state = NULL;
    conn->idle = 0;
    TAILQ_INSERT_HEAD(&stream->kept, side, sibling);
    if (side->target == NULL || stream->draining) {
        fb_conn_fail(conn, FB_NO_MEMORY);
        return;
    }
    fb_timer_del(&conn->net->loop, &conn->timer);
    fb_timer_set(&conn->net->loop, &conn->timer, side->keep_ms);
    conn->closing = 0;
    conn->stopped = 1; /* whatever it was, it is read now */
    fb_conn_resume(conn);
}

/* Nothing has happened on it of which it has not heard yet. */
static bool is_sound(const struct fb_conn *conn)
{
    return !conn->closing && conn->failed == 0 && !conn->source.events[FB_READ].ready;
}

/* The one that was used last: its server is the least likely to close it just now. */
static struct fb_side *find_kept(
    struct fb_stream *stream, const struct fb_target *target, const fb_ops *ops)
{
    struct fb_side *side;

    TAILQ_FOREACH (side, &stream->kept, sibling)
        if (side->ops == ops && is_sound(side->conn) &&
            fb_address_equal(&side->target->address, &target->address))
            return side;
    return NULL;
}

static struct fb_conn *take_kept(struct fb_side *side, struct fb_conn *owner)
{
    struct fb_conn *conn = side->conn;

    TAILQ_REMOVE(&fb_stream_of(conn)->kept, side, sibling);
    fb_timer_del(&conn->net->loop, &conn->timer);
    fb_conn_reopen(conn, &fb_session_ops, owner->owner);
    side->reused = true;
    return conn;
}

static struct fb_conn *connect_new(struct fb_side *side, struct fb_conn *owner)
{
    const struct fb_address *address = &side->target->address;
    struct fb_net *net = owner->net;
    struct fb_conn *conn;

    if (net->connection_n == net->connections_max)
        fb_stream_drop_kept(fb_stream_of(owner));
    conn = fb_conn_connect(
        net, owner, &address->any, address->length, &fb_session_ops, owner->owner, side);
    if (conn == NULL)
        return NULL;
    side->conn = conn;
    fb_timer_set(&net->loop, &conn->timer, CONNECT_TIMEOUT_MS);
    return conn;
}

struct fb_conn *fb_session_connect(
    struct fb_conn *owner, const struct fb_target *target, const fb_ops *ops, void *state)
{
    struct fb_side *parent, *side, *kept;
    struct fb_conn *conn;

    if (owner->closing || owner->failed != 0)
        return NULL;
    parent = fb_side_make(owner);
    if (parent == NULL)
        return NULL;
    kept = find_kept(fb_stream_of(owner), target, ops);
    side = kept != NULL ? kept : fb_side_create(owner->net);
    if (side == NULL)
        return NULL;
    side->ops = ops;
    side->parent = parent;
    if (kept != NULL)
        conn = take_kept(kept, owner);
    side->target = target;
    if (kept == NULL)
        conn = connect_new(side, owner);
    if (conn == NULL) {
        fb_memory_release(owner->net->memory, side);
        return NULL;
    }
    TAILQ_INSERT_HEAD(&parent->children, side, sibling);
    conn->state = state;
    conn->number = owner->number;
    conn->debug = owner->debug;
    return conn;
}

/* It ends with its owner, or would have by itself. */
static fb_reason reason_to_end(const struct fb_conn *conn)
{
    if (conn->failed != 0)
        return (fb_reason)conn->failed;
    if ((conn->shut && conn->eof) || (conn->closing && conn->unsent == 0))
        return FB_FINISHED;
    return FB_ABORTED;
}

void fb_session_end_children(struct fb_side *side)
{
    struct fb_side *child;

    while ((child = TAILQ_FIRST(&side->children)) != NULL)
        fb_conn_end(child->conn, reason_to_end(child->conn));
}

bool fb_stream_drop_kept(struct fb_stream *stream)
{
    struct fb_side *side = TAILQ_LAST(&stream->kept, fb_kept);

    if (side == NULL)
        return false;
    fb_conn_end(side->conn, FB_ABORTED);
    return true;
}

void fb_stream_close_kept(struct fb_stream *stream)
{
    struct fb_side *side;

    TAILQ_FOREACH (side, &stream->kept, sibling)
        fb_conn_close(side->conn);
    fb_net_settle(&stream->net);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream/session_conn.h"

struct fb_side *fb_side_create(struct fb_net *net)
{
    struct fb_side *side = fb_memory_alloc(net->memory, sizeof(*side));

    if (side == NULL)
        return NULL;
    *side = (struct fb_side) { .kind = SESSION_CONN_KIND };
    TAILQ_INIT(&side->children);
    LIST_INIT(&side->timers);
    return side;
}

struct fb_side *fb_side_make(struct fb_conn *conn)
{
    struct fb_side *side = fb_side_of(conn);

    if (side != NULL)
        return side;
    side = fb_side_create(conn->net);
    if (side == NULL) {
        fb_conn_fail(conn, FB_NO_MEMORY);
        return NULL;
    }
    side->conn = conn;
    conn->session = side;
    return side;
}

void fb_side_clear(struct fb_side *side)
{
    struct fb_conn *conn = side->conn;
    struct fb_net *net = conn->net;

    CHECK_KIND(side, SESSION_CONN_KIND);
    assert(TAILQ_EMPTY(&side->children));
    session_timers_clear(side);
    fb_timer_del(&net->loop, &side->frame_timer);
    side->frame_most = 0;
    fb_net_release(net, &side->lasting);
    fb_net_release(net, &side->temporary);
    session_name_drop(side);
    side->unanswered = 0;
    side->own_timeout = false;
    if (side->parent != NULL)
        TAILQ_REMOVE(&side->parent->children, side, sibling);
    side->parent = NULL;
}

void fb_side_free(struct fb_conn *conn)
{
    struct fb_side *side = fb_side_of(conn);

    if (side == NULL)
        return;
    assert(side->conn == conn);
    fb_side_clear(side);
    side->kind = 0;
    fb_memory_release(conn->net->memory, side);
    conn->session = NULL;
}

/* Returns why a connection ends with its owner: for a reason of its own, if it had one. */
static fb_reason reason_to_end(const struct fb_conn *conn)
{
    if (conn_has_failed(conn))
        return (fb_reason)conn->reason;
    if (conn->write == CONN_WRITE_ENDED && conn->read == CONN_READ_ENDED)
        return FB_FINISHED;
    return !conn_is_active(conn) && conn->unsent == 0 ? FB_FINISHED : FB_ABORTED;
}

void fb_session_end_children(struct fb_side *side)
{
    struct fb_side *child;

    CHECK_KIND(side, SESSION_CONN_KIND);
    while ((child = TAILQ_FIRST(&side->children)) != NULL) {
        assert(child->parent == side && child->conn->outgoing);
        fb_conn_end(child->conn, reason_to_end(child->conn));
    }
}

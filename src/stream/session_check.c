/* SPDX-License-Identifier: BSD-2-Clause */
/* The invariants of sessions, asserted between callbacks by tests and debug builds.
 *
 * Responsible for looking only: changes nothing. */
#include "stream/keepalive.h"
#include "stream/session.h"

static void check_links(const struct fb_conn *conn, const struct fb_side *side)
{
    const struct fb_side *child;

    CHECK_KIND(side, SESSION_CONN_KIND);
    assert(side->conn == conn);
    TAILQ_FOREACH (child, &side->children, sibling) {
        CHECK_KIND(child, SESSION_CONN_KIND);
        assert(child->parent == side && child->conn->outgoing);
        assert(child->conn->session == child);
    }
    assert(side->parent == NULL || conn->outgoing);
    assert(side->name <= fb_stream_of(conn)->last_name);
    assert(side->frame_most > 0 || !fb_timer_is_set(&side->frame_timer));
    assert(!conn->outgoing || side->ops != NULL);
}

static void check_kept(const struct fb_conn *conn, const struct fb_side *side)
{
    assert(conn->outgoing && keepalive_has(conn) && side != NULL);
    assert(side->parent == NULL && TAILQ_EMPTY(&side->children) && LIST_EMPTY(&side->timers));
    assert(side->name == 0 && side->unanswered == 0 && conn->state == NULL);
    assert(!conn_is_active(conn) || fb_timer_is_set(&conn->timer));
}

void session_check(const struct fb_conn *conn)
{
    const struct fb_side *side = fb_side_of(conn);

    assert(conn->session_phase < SESSION_PHASES);
    assert((conn->session_phase == SESSION_KEPT) == (keepalive_has(conn) && side != NULL));
    if (side != NULL)
        check_links(conn, side);
    if (!conn_is_owned(conn)) {
        assert(side == NULL && conn->session_phase == SESSION_ENDED);
        return;
    }
    assert(conn->session_phase != SESSION_ENDED);
    if (conn->session_phase == SESSION_KEPT)
        check_kept(conn, side);
    else if (conn->outgoing)
        assert(side != NULL && side->parent != NULL && side->target != NULL);
    if (conn->session_phase == SESSION_AWAITED && conn_is_active(conn) && conn->pipe == NULL)
        assert(fb_timer_is_set(&conn->timer));
    if (conn->phase == CONN_OPEN && conn->session_phase == SESSION_NEW)
        assert(conn->pipe != NULL); /* piped before it was connected: `opened` is not called */
}

void stream_check(const struct fb_stream *stream)
{
    const struct fb_side *side;
    struct fb_conn *conn;
    uint32_t index = 0, kept = 0;

    net_check(&stream->net);
    while ((conn = net_next_conn(&stream->net, &index)) != NULL) {
        session_check(conn);
        kept += fb_session_is_kept(conn);
    }
    TAILQ_FOREACH (side, &stream->kept, sibling) {
        CHECK_KIND(side, SESSION_CONN_KIND);
        assert(fb_session_is_kept(side->conn) && kept > 0);
        kept--;
    }
    assert(kept == 0);
    assert(stream->draining || !fb_timer_is_set(&stream->drain));
}

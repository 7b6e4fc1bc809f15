/* SPDX-License-Identifier: BSD-2-Clause */
/* Open connections to servers between two owners: any event ends the connection. */
#include "backends/keepalive.h"

#include "backends/trunk.h"
#include "net/conn_flush.h"
#include "session/conn.h"
#include "session/conn_end.h"
#include "session/idle.h"
#include "session/session.h"
#include "session/timeouts.h"

/* Callbacks of an idle connection: any input or event ends the connection. */

static size_t idle_data(struct fb_conn *conn, fb_bytes in)
{
    conn_log(conn, LEVEL_INFO, 0, "an idle connection that has received %zu bytes is closed", in.n);
    conn_fail(conn, FB_ABORTED);
    return in.n;
}

static void idle_eof(struct fb_conn *conn, fb_bytes rest)
{
    (void)rest;
    conn_close(conn);
}

static void idle_closed(struct fb_conn *conn, fb_reason reason)
{
    (void)reason;
    assert(session_is_keepalive(conn));
    TAILQ_REMOVE(&stream_of(conn)->keepalive, session_outgoing_of(conn->session), among);
    if (session_trunk_of(conn->session) != NULL)
        trunk_take(session_reuse_of(conn->session));
    session_set_phase(conn, SESSION_ENDED);
    session_conn_free(conn);
}

static void idle_describe(
    const struct fb_conn *conn, struct log_line *line, char client[ADDRESS_TEXT])
{
    const struct session_conn *session = conn->session;

    (void)client;
    if (session != NULL &&
        session_target_of(session) != NULL) /* none once the connection is closed but lingers */
        line->upstream = session_target_of(session)->text;
}

static const struct conn_ops idle_ops = {
    .opened = session_ignore,
    .data = idle_data,
    .eof = idle_eof,
    .writable = session_ignore,
    .expired = conn_close,
    .closed = idle_closed,
    .describe = idle_describe,
};

bool keepalive_has(const struct fb_conn *conn)
{
    return conn->ops == &idle_ops;
}

/* Whether the connection may have another user. */
static bool is_worth_it(const struct fb_conn *conn)
{
    const struct trunk *trunk;

    if (!conn->outgoing || stream_of(conn)->draining)
        return false;
    trunk = session_trunk_of(conn->session);
    return trunk == NULL || !trunk_is_old(conn, trunk);
}

void keepalive_keep(struct fb_conn *conn, uint64_t ms)
{
    if (conn->outgoing)
        session_outgoing_of(conn->session)->keep_ms =
            (uint32_t)(ms < CONN_DEADLINE_MOST ? ms : CONN_DEADLINE_MOST) + (ms == 0);
    if (is_worth_it(conn))
        conn_keep(conn);
    else
        session_close(conn);
}

/* Copies the target, perhaps in memory of the last owner; NULL without memory. */
static struct fb_target *copy_target(struct fb_conn *conn, const struct fb_target *target)
{
    struct fb_target *copy = net_alloc(conn->net, &conn->session->lasting, sizeof(*copy));

    if (copy != NULL)
        *copy = *target;
    return copy;
}

/* Returns for how long the connection may be idle, at least 1 ms. */
static uint64_t time_to_keep(const struct session_conn *session)
{
    const struct trunk *trunk = session_trunk_of(session);
    uint64_t age = session->conn->net->loop.clock.mono_ms - session->conn->opened_ms;
    uint32_t keep_ms = session_outgoing_of(session)->keep_ms;

    if (trunk == NULL || trunk->age == 0 || age + keep_ms <= trunk->age)
        return keep_ms;
    return age < trunk->age ? trunk->age - age : 1;
}

bool keepalive_put(struct fb_conn *conn)
{
    struct stream *stream = stream_of(conn);
    struct session_conn *session = conn->session;
    struct session_outgoing *outgoing = session_outgoing_of(session);
    struct fb_target target = *outgoing->target;
    struct session_reuse *reuse = session_reuse_of(session);
    struct trunk *trunk = session_trunk_of(session);

    assert(conn->outgoing && conn->phase == CONN_KEEPING && conn->in == NULL);
    session_conn_end_children(session);
    session_call_closed(conn, session->ops, FB_FINISHED);
    session_conn_clear(session);
    if (reuse != NULL && reuse->first_ops != NULL) {
        session->ops = reuse->first_ops;
        reuse->first_ops = NULL;
    }
    session->error = 0;
    outgoing->target = trunk != NULL ? &trunk->target : copy_target(conn, &target);
    session_set_phase(conn, SESSION_KEEPALIVE);
    conn->ops = &idle_ops;
    conn->state = NULL;
    if (conn->idle)
        idle_leave(conn);
    TAILQ_INSERT_HEAD(&stream->keepalive, outgoing, among);
    if (trunk != NULL)
        trunk_put(reuse);
    if (outgoing->target == NULL || stream->draining)
        return false;
    conn_deadline_set(conn, time_to_keep(session));
    return true;
}

/* Whether the connection is open, without unread input or end: only then is it reusable. */
static bool is_sound(const struct fb_conn *conn)
{
    return conn_is_active(conn) && !conn->source.events[EVENT_READ].ready && !conn->source.partial;
}

/* Finds the connection used last: its server is the least likely to close it just now. */
static struct session_conn *find_idle(
    struct stream *stream, const struct fb_target *target, const fb_ops *ops)
{
    struct session_outgoing *kept;

    TAILQ_FOREACH (kept, &stream->keepalive, among) {
        struct session_conn *session = &kept->session;

        CHECK_KIND(session, SESSION_CONN_KIND);
        if (session->ops == ops && session_trunk_of(session) == NULL && is_sound(session->conn) &&
            address_equal(&kept->target->address, &target->address))
            return session;
    }
    return NULL;
}

static struct fb_conn *take_idle(struct stream *stream, struct session_conn *session)
{
    struct fb_conn *conn = session->conn;

    assert(session_is_keepalive(conn) && keepalive_has(conn) && !session->is_child);
    TAILQ_REMOVE(&stream->keepalive, session_outgoing_of(session), among);
    conn_deadline_clear(conn);
    session_set_phase(conn, SESSION_NEW);
    session->reused = true;
    return conn;
}

struct fb_conn *keepalive_find(const struct trunk *trunk)
{
    struct session_reuse *reuse;

    TAILQ_FOREACH (reuse, &trunk->idle, alike) {
        struct fb_conn *conn = reuse->session->conn;

        CHECK_KIND(reuse->session, SESSION_CONN_KIND);
        if (is_sound(conn) && !trunk_is_old(conn, trunk))
            return conn;
    }
    return NULL;
}

bool keepalive_may_be_found(const struct trunk *trunk)
{
    const struct session_reuse *reuse;

    TAILQ_FOREACH (reuse, &trunk->idle, alike) {
        const struct fb_conn *conn = reuse->session->conn;

        if (conn_is_active(conn) && conn->source.events[EVENT_READ].ready)
            return true;
    }
    return false;
}

struct fb_conn *keepalive_take(struct stream *stream, const struct trunk *trunk)
{
    struct fb_conn *conn = keepalive_find(trunk);

    if (conn == NULL)
        return NULL;
    trunk_take(session_reuse_of(conn->session));
    return take_idle(stream, conn->session);
}

struct fb_conn *keepalive_get(
    struct stream *stream, const struct fb_target *target, const fb_ops *ops)
{
    struct session_conn *session = find_idle(stream, target, ops);

    return session == NULL ? NULL : take_idle(stream, session);
}
bool keepalive_evict(struct stream *stream)
{
    struct session_outgoing *kept = TAILQ_LAST(&stream->keepalive, keepalive_list);

    if (kept == NULL)
        return false;
    assert(session_is_keepalive(kept->session.conn));
    conn_end(kept->session.conn, FB_ABORTED);
    return true;
}

void keepalive_close_all(struct stream *stream)
{
    struct session_outgoing *kept;

    TAILQ_FOREACH (kept, &stream->keepalive, among)
        conn_close(kept->session.conn);
    net_flush(&stream->net);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers, made for a session or taken from the keepalive pool.
 *
 * Responsible for what such a connection inherits from the session that it is made for. Never keeps
 * one longer than that session, unless it is put into the pool. Invariant: a child is on its
 * parent's list from the return of fb_connect() until it ends or goes to the pool. */
#include "backends/connect.h"
#include "backends/chain.h"
#include "backends/keepalive.h"
#include "base/compiler.h"
#include "net/conn_connect.h"
#include "net/target.h"
#include "session/conn_end.h"
#include "session/idle.h"
#include "session/session.h"

#include <inttypes.h>
#include <stdio.h>

/* Takes a connection from the keepalive pool; NULL where there is none. */
static NOINLINE struct fb_conn *connect_reused(struct fb_conn *owner, struct session_conn *parent,
    const struct fb_target *target, const fb_ops *ops)
{
    struct fb_conn *conn = keepalive_get(stream_of(owner), target, ops);

    if (conn == NULL)
        return NULL;
    conn_reopen(conn, &session_conn_ops, owner->owner);
    session_outgoing_of(session_conn_of(conn))->target = target;
    session_conn_adopt(session_conn_of(conn), parent);
    conn->number = owner->number;
    conn->debug = owner->debug;
    return conn;
}

COLD void backend_make_room(struct stream *stream, const struct fb_conn *owner)
{
    struct net *net = &stream->net;
    char text[64];
    uint32_t n;

    snprintf(
        text, sizeof(text), "%" PRIu32 " worker_connections are not enough", net->connections_max);
    n = idle_reclaim(stream, owner, text);
    n += net->overdraft;         /* read afterwards: one of the keepalive pool has gone already */
    if (net_lacks_slots(net, 1)) /* none of the keepalive pool has gone */
        net->overdraft = n < NET_OVERDRAFT ? n : NET_OVERDRAFT;
}

/* Begins a new connection; NULL without memory or a free slot. Log lines of a failure need its
 * parent and target at once. */
static inline struct fb_conn *connect_new(struct fb_conn *owner, struct session_conn *parent,
    const struct fb_target *target, const fb_ops *ops, uint64_t timeout, uint8_t log_level)
{
    const struct address *address = &target->address;
    struct net *net = owner->net;
    struct session_outgoing *outgoing = session_outgoing_create(stream_of(owner));
    struct session_conn *session;
    struct fb_conn *conn;

    if (unlikely(outgoing == NULL))
        return NULL;
    outgoing->log_level = log_level;
    session = &outgoing->session;
    session->ops = ops;
    outgoing->target = target;
    session_conn_adopt(session, parent);
    if (unlikely(net_is_full(net)))
        backend_make_room(stream_of(owner), owner);
    conn = conn_connect(
        net, owner, &address->any, address->length, NULL, &session_conn_ops, owner->owner, session);
    if (unlikely(conn == NULL)) {
        session_outgoing_discard(stream_of(owner), outgoing);
        return NULL;
    }
    session->conn = conn;
    if (unlikely(chain_may_be_ours(stream_of(owner), address)))
        chain_note(session_client_of(owner), conn, target);
    session_set_phase(conn, SESSION_NEW);
    if (unlikely(conn_lacks_descriptor(conn)))
        idle_reclaim(stream_of(owner), owner, "descriptors are not enough");
    conn_deadline_set(conn, timeout);
    return conn;
}

struct fb_conn *backend_connect(struct fb_conn *owner, const struct fb_target *target,
    const fb_ops *ops, void *state, uint64_t timeout, uint8_t log_level)
{
    struct session_conn *parent, *session;
    struct fb_conn *conn = NULL;
    bool kept;

    assert(target != NULL && ops != NULL);
    if (!conn_is_active(owner))
        return NULL;
    parent = session_conn_make(owner);
    if (unlikely(parent == NULL))
        return NULL;
    kept = session_keeps_slot(owner);
    net_reserve(owner->net, -kept);
    if (unlikely(!TAILQ_EMPTY(&stream_of(owner)->keepalive)))
        conn = connect_reused(owner, parent, target, ops);
    if (likely(conn == NULL))
        conn = connect_new(owner, parent, target, ops, timeout, log_level);
    if (unlikely(conn == NULL)) {
        net_reserve(owner->net, kept);
        return NULL;
    }
    session = session_conn_of(conn);
    assert(session->conn == conn && session->is_child && session->maker == parent);
    LIST_INSERT_HEAD(&parent->children, session_outgoing_of(session), sibling);
    conn->state = state;
    return conn;
}

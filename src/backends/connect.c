/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers, made for a session or for the worker, or taken from the keepalive pool.
 *
 * Responsible for the connection's inheritance from the session, for the options, and for the
 * turn in a trunk's queue. Never keeps a child longer than the session, unless it is put into
 * the pool. Invariant: a child is on the parent's list from the return of fb_connect() until the
 * end or the pool; a connection without a parent is in the worker's list. */
#include "backends/connect.h"
#include "backends/chain.h"
#include "backends/keepalive.h"
#include "backends/tls.h"
#include "backends/tries.h"
#include "backends/trunk.h"
#include "base/compiler.h"
#include "net/address_parse.h"
#include "net/conn_connect.h"
#include "session/conn_end.h"
#include "session/idle.h"
#include "session/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Interval (ms) between critical log lines about errors of this host. */
#define HOST_SAID_MS 60000

/* Asks the flush to close idle connections, none of `owner`'s, and lets as many be made now. */
static COLD void make_room_for_server(struct stream *stream, const struct fb_conn *owner)
{
    struct net *net = &stream->net;
    char text[64];
    uint32_t n;

    snprintf(
        text, sizeof(text), "%" PRIu32 " worker_connections are not enough", net->connections_max);
    n = idle_reclaim(stream, owner, text);
    n += net->overdraft;         /* read afterwards: a pool connection has gone already */
    if (net_lacks_slots(net, 1)) /* none of the keepalive pool has gone */
        net->overdraft = n < NET_OVERDRAFT ? n : NET_OVERDRAFT;
}

/* The parts of a connection. Functions of an order are inlined into the callers, where some fields
 * are known to be NULL. */
struct order {
    struct stream *stream;
    struct binding *binding;
    struct fb_conn *owner;       /* NULL: the worker */
    struct session_conn *parent; /* the owner's */
    struct trunk *trunk;         /* or NULL */
    const struct fb_target *target;
    bool lasting; /* the target lives as long as the connection */
    const fb_ops *ops;
    uint64_t timeout, queue_timeout; /* ms: for the server's answer; for a place, 0: any */
    uint8_t log_level;
};

/* Returns a target with the session's lifetime, or NULL without memory. */
static NOINLINE const struct fb_target *own_target(
    const struct order *order, struct session_conn *session)
{
    struct fb_target *copy;

    if (order->trunk != NULL)
        return &order->trunk->target;
    copy = net_alloc(&order->stream->net, &session->lasting, sizeof(*copy));
    if (copy != NULL)
        *copy = *order->target;
    return copy;
}

/* Begins to connect in a trunk, or to wait; NULL without a free slot, or memory. */
static NOINLINE struct fb_conn *begin_in_trunk(
    const struct order *order, struct session_conn *session)
{
    struct net *net = &order->stream->net;
    const struct address *address = &order->target->address;
    struct session_reuse *reuse = session_reuse_make(order->stream, session);
    struct io_connect options;

    if (reuse == NULL)
        return NULL;
    if (trunk_is_full(order->trunk)) {
        trunk_wait(reuse, order->trunk);
        return conn_connect_later(
            net, order->owner, &address->any, &session_conn_ops, order->binding, session);
    }
    trunk_enter(reuse, order->trunk);
    return conn_connect(net, order->owner, &address->any, address->length,
        trunk_options(order->trunk, &options), &session_conn_ops, order->binding, session);
}

/* Begins the wait of a connection without a socket: for a place, or for a descriptor. */
static NOINLINE void wait_for_socket(const struct order *order, struct session_conn *session)
{
    struct fb_conn *conn = session->conn;

    if (!session->waits) {
        if (conn_lacks_descriptor(conn))
            idle_reclaim(order->stream, order->owner, "descriptors are not enough");
        conn_deadline_set(conn, order->timeout);
        return;
    }
    session->timeout = session_clamp_ms(order->timeout);
    if (order->queue_timeout > 0)
        conn_deadline_set(conn, order->queue_timeout);
    trunk_wake(order->trunk); /* an idle connection may only have to be looked at */
}

/* Begins a connection; NULL without memory or a slot. Log lines need parent, target and level. */
static ALWAYS_INLINE struct session_outgoing *connect_new(const struct order *order)
{
    struct stream *stream = order->stream;
    struct net *net = &stream->net;
    struct session_outgoing *outgoing = session_outgoing_create(stream);
    struct session_conn *session;
    struct fb_conn *conn = NULL;

    if (unlikely(outgoing == NULL))
        return NULL;
    outgoing->log_level = order->log_level;
    session = &outgoing->session;
    session->ops = order->ops;
    if (order->parent != NULL)
        session_conn_adopt(session, order->parent);
    outgoing->target =
        order->trunk == NULL && order->lasting ? order->target : own_target(order, session);
    if (unlikely(net_is_full(net)))
        make_room_for_server(stream, order->owner);
    if (likely(outgoing->target != NULL))
        conn = order->trunk != NULL ? begin_in_trunk(order, session)
                                    : conn_connect(net, order->owner, &order->target->address.any,
                                          order->target->address.length, NULL, &session_conn_ops,
                                          order->binding, session);
    if (unlikely(conn == NULL)) {
        net_release(net, &session->lasting);
        session_outgoing_discard(stream, outgoing);
        return NULL;
    }
    session->conn = conn;
    conn->opened_ms = net->loop.clock.mono_ms;
    if (order->owner != NULL)
        chain_note(stream, order->owner, conn);
    session_set_phase(conn, SESSION_NEW);
    if (unlikely(order->trunk != NULL) && order->trunk->tls != NULL && conn_is_active(conn) &&
        backend_tls_await(conn) == -1)
        conn_fail(conn, FB_NO_MEMORY);
    if (likely(conn->source.fd != -1))
        conn_deadline_set(conn, order->timeout);
    else
        wait_for_socket(order, session);
    return outgoing;
}

/* Takes a connection out of the keepalive pool; NULL where there is none. */
static NOINLINE struct fb_conn *find_reusable(struct stream *stream, const struct trunk *trunk,
    const struct fb_target *target, const fb_ops *ops)
{
    if (trunk == NULL)
        return keepalive_get(stream, target, ops);
    return trunk->waiting_n == 0 ? keepalive_take(stream, trunk) : NULL;
}

static inline void reopen_reused(const struct order *order, struct fb_conn *conn)
{
    conn_reopen(conn, &session_conn_ops, order->binding);
    if (order->trunk == NULL && order->lasting)
        session_outgoing_of(conn->session)->target = order->target;
    if (order->parent != NULL) {
        session_conn_adopt(conn->session, order->parent);
        conn->number = order->owner->number;
    }
    conn->debug = order->owner != NULL && order->owner->debug;
}

/* Whether no connection may be made: the queue is full, or the worker ends. */
static inline bool is_refused(const struct order *order)
{
    const struct stream *stream = order->stream;
    const struct trunk *trunk = order->trunk;

    if (order->owner == NULL && stream->draining && stream->deadline_at != 0 &&
        stream->net.loop.clock.mono_ms >= stream->deadline_at)
        return true;
    return trunk != NULL && trunk_is_full(trunk) && trunk->waiting_n >= trunk->queue;
}

/* Returns where the connection's bytes are counted: for the server of the owner's try. */
static inline struct stats_traffic *traffic_of(const struct order *order)
{
    const struct session_tries *tries =
        order->parent != NULL && !order->owner->outgoing ? session_tries_of(order->owner) : NULL;
    const struct peer *peer = tries != NULL ? tries->choice.peer : NULL;

    return peer != NULL && order->target == &peer->target && peer->server->stats.own != NULL
               ? &peer->server->stats.own->traffic
               : &order->stream->net.traffic;
}

static ALWAYS_INLINE struct fb_conn *fill_order(const struct order *order, void *state)
{
    struct stream *stream = order->stream;
    bool kept = order->owner != NULL && session_keeps_slot(order->owner);
    struct session_outgoing *outgoing = NULL;
    struct fb_conn *conn = NULL;

    net_reserve(&stream->net, -kept);
    if (order->trunk != NULL || unlikely(!TAILQ_EMPTY(&stream->keepalive)))
        conn = find_reusable(stream, order->trunk, order->target, order->ops);
    if (unlikely(conn != NULL)) {
        reopen_reused(order, conn);
        outgoing = session_outgoing_of(conn->session);
    } else if ((order->owner != NULL && order->trunk == NULL) || !is_refused(order)) {
        outgoing = connect_new(order);
    }
    if (unlikely(outgoing == NULL)) {
        net_reserve(&stream->net, kept);
        return NULL;
    }
    conn = outgoing->session.conn;
    assert(
        conn->session == &outgoing->session && session_parent_of(conn->session) == order->parent);
    if (order->parent != NULL) {
        LIST_INSERT_HEAD(&order->parent->children, outgoing, sibling);
    } else {
        TAILQ_INSERT_HEAD(&stream->own, outgoing, among);
        outgoing->session.is_own = true;
    }
    conn->state = state;
    conn->traffic = traffic_of(order);
    return conn;
}

bool backend_connect_wants_trunk(const fb_connect_options *options)
{
    return options->local != NULL || options->age > 0 || options->tls != NULL ||
           (options->receive_buffer | options->key_n | options->limit |
               (options->flags & TRUNK_FLAGS)) != 0;
}

struct fb_conn *backend_connect(struct fb_conn *owner, const struct fb_target *target,
    const fb_ops *ops, void *state, uint64_t timeout, uint8_t log_level)
{
    const struct order order = {
        .stream = stream_of(owner),
        .binding = owner->owner,
        .owner = owner,
        .parent = conn_is_active(owner) ? session_conn_make(owner) : NULL,
        .target = target,
        .lasting = true,
        .ops = ops,
        .timeout = timeout,
        .log_level = log_level,
    };

    assert(target != NULL && ops != NULL);
    return likely(order.parent != NULL) ? fill_order(&order, state) : NULL;
}

/* Returns the trunk of the options; NULL without memory, or where TLS has no proper name. */
static NOINLINE struct trunk *find_trunk(
    const struct order *order, const fb_connect_options *options)
{
    struct trunk_wish wish = {
        .target = order->target,
        .ops = order->ops,
        .options = options,
        .timeout = order->timeout,
    };

    if (options->tls != NULL &&
        (backend_tls_find_name(order->owner, options, order->stream, &wish.tls_name) == -1 ||
            backend_tls_find_paths(order->owner, options, &wish.tls_paths) == -1))
        return NULL;
    return trunk_get(order->stream, &wish);
}

struct fb_conn *backend_connect_with(struct stream *stream, struct binding *own,
    const struct fb_target *target, bool lasting, const fb_ops *ops, void *state,
    const fb_connect_options *options)
{
    struct order order = {
        .stream = stream,
        .binding = own,
        .owner = options->owner,
        .target = target,
        .lasting = lasting,
        .ops = ops,
        .timeout = options->timeout > 0 ? options->timeout : BACKEND_TIMEOUT_MS,
        .queue_timeout = options->queue_timeout,
        .log_level =
            (uint8_t)(options->log_level < FB_LOG_DEBUG ? options->log_level : FB_LOG_DEBUG),
    };
    struct fb_conn *conn;

    assert(target != NULL && ops != NULL && (own == NULL) == (options->owner != NULL));
    if (order.owner != NULL) {
        if (!conn_is_active(order.owner))
            return NULL;
        order.binding = session_binding_of(order.owner);
        order.parent = session_conn_make(order.owner);
        if (order.parent == NULL)
            return NULL;
    }
    if (backend_connect_wants_trunk(options)) {
        order.trunk = find_trunk(&order, options);
        if (order.trunk == NULL)
            return NULL;
    }
    conn = fill_order(&order, state);
    if (order.trunk != NULL)
        trunk_drop(stream, order.trunk);
    return conn;
}

/* ---- The queue ---- */

/* Takes the place of an idle connection, with the attached pointer. */
static void take_over(struct session_conn *session, struct fb_conn *idle)
{
    struct session_reuse *reuse = session_reuse_of(session);
    struct session_reuse *from = session_reuse_of(idle->session);

    if (from->attached != NULL && reuse->attached != NULL)
        chunk_free(&idle->net->chunks, reuse->attached);
    if (from->attached != NULL)
        reuse->attached = from->attached;
    from->attached = NULL;
    session->reused = true;
    session->conn->opened_ms = idle->opened_ms;
    conn_take_over(session->conn, idle);
}

/* Looks for an idle connection or a place, perhaps in vain, for a waiting connection. */
static COLD void serve_waiting(struct session_conn *session)
{
    struct trunk *trunk = session_trunk_of(session);
    struct fb_conn *conn = session->conn, *idle;
    const struct address *address = &trunk->target.address;
    struct io_connect options;

    assert(session->waits);
    if (TAILQ_FIRST(&trunk->waiting) != session_reuse_of(session))
        return;
    idle = keepalive_find(trunk);
    if (idle == NULL && trunk->limit > 0 && trunk->conn_n >= trunk->limit) {
        if (keepalive_may_be_found(trunk))
            conn_connect_soon(conn);
        return;
    }
    trunk_enter(session_reuse_of(session), trunk);
    conn_deadline_clear(conn);
    if (idle != NULL) {
        take_over(session, idle);
    } else {
        conn->opened_ms = conn->net->loop.clock.mono_ms;
        if (session->timeout > 0)
            conn_deadline_set(conn, session->timeout);
        conn_connect_again(conn, &address->any, address->length, trunk_options(trunk, &options));
    }
    trunk_wake(trunk);
}

void backend_connect_again(struct fb_conn *conn)
{
    struct session_conn *session = conn->session;
    const struct address *address = &session_target_of(session)->address;
    struct io_connect options, *how = NULL;

    if (session->waits) {
        serve_waiting(session);
        return;
    }
    if (session_trunk_of(session) != NULL)
        how = trunk_options(session_trunk_of(session), &options);
    conn_connect_again(conn, &address->any, address->length, how);
}

void backend_connect_expired(struct fb_conn *conn)
{
    const struct session_conn *session = conn->session;

    if (session->waits) {
        conn_connect_failed(conn, ETIMEDOUT, IO_CONNECT);
        return;
    }
    conn_log(conn, session_level_of(conn), ETIMEDOUT, "upstream timed out");
    conn_fail_by(conn, ETIMEDOUT);
}

/* Whether a connect() has failed for lack of the host's ports, descriptors or memory. */
static bool is_of_this_host(int error)
{
    return error == EADDRNOTAVAIL || error == EADDRINUSE || error == EMFILE || error == ENFILE ||
           error == ENOBUFS || error == ENOMEM;
}

/* Returns the level of a line about a host error: crit, past all limits, once in a while. */
static enum log_level level_of_host(struct stream *stream)
{
    uint64_t now = stream->net.loop.clock.mono_ms;

    if (stream->host_said_ms != 0 && now - stream->host_said_ms <= HOST_SAID_MS)
        return LEVEL_ERROR;
    stream->host_said_ms = now;
    return LEVEL_CRIT;
}

COLD void backend_connect_failed(struct fb_conn *conn, int error, enum io_step step)
{
    const struct session_conn *session = conn->session;
    enum log_level level = session_level_of(conn);
    char text[ADDRESS_TEXT];

    if (!session->waits && is_of_this_host(error))
        level = level_of_host(stream_of(conn));
    if (session->waits)
        conn_log(conn, level, error, "no connection to the server has become free");
    else if (step == IO_TRANSPARENT)
        conn_log(conn, level, error, "setsockopt(IP_TRANSPARENT) failed: cannot connect from %s",
            address_format(&session_trunk_of(session)->local, false, text));
    else if (step == IO_BIND)
        conn_log(conn, level, error, "bind() to %s failed",
            address_format(&session_trunk_of(session)->local, true, text));
    else if (error == EADDRNOTAVAIL || error == EADDRINUSE)
        conn_log(conn, level, error,
            "local ports are exhausted towards %s, or no local address leads there: see "
            "proxy_bind",
            session_target_of(session)->text);
    else
        conn_log(conn, level, error, "connect() failed");
}

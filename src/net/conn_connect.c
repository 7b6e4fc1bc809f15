/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections are made: of accepted clients, and to servers.
 *
 * Responsible for the first members of a connection, for beginning a connect() and its failures,
 * and for opening at once where no more is to be done. Never moves bytes. Invariants: a new slot
 * has no traces of its last connection; `closed` runs for each outgoing connection, opened or
 * not. */
#include "net/conn_connect.h"

#include "net/conn_flush.h"
#include "net/conn_input.h"
#include "net/conn_log.h"

#include <errno.h>

/* Goes on when the peer has taken output, or our connect() has been answered. */
static void run_write(struct loop *loop, struct source *source)
{
    struct fb_conn *conn = container_of(source, struct fb_conn, source);

    /* connected, and a flush would do nothing but say so */
    if (conn->phase == CONN_CONNECTING && conn->pipe == NULL && conn->out == NULL &&
        conn->unsent == 0 && conn->write == CONN_WRITE_ON && source->events[EVENT_WRITE].ready &&
        conn_is_told_connected(conn)) {
        conn_trace(conn, "connected");
        conn_set_phase(conn, CONN_OPENING);
        source_disarm(loop, source, EVENT_WRITE);
        conn_open(conn);
        return;
    }
    conn_flush(conn);
    net_flush(conn->net);
}

static void debug_event(const struct source *source, const char *format, va_list args)
{
    const struct fb_conn *conn = container_of(source, struct fb_conn, source);

    assert(source->in_use && conn->net != NULL);
    if (conn_debugs(conn))
        conn_vlog(conn, LEVEL_DEBUG, 0, format, args);
}

static const struct source_ops source_ops = {
    .run = { [EVENT_READ] = conn_run_read, [EVENT_WRITE] = run_write },
    .debug = DEBUG_BUILD ? debug_event : NULL,
    .wants_broken = true,
};

void conn_peer_set(struct conn_peer *peer, const struct sockaddr *address)
{
    const struct sockaddr_in *in = (const void *)address;
    const struct sockaddr_in6 *in6 = (const void *)address;

    peer->family = address->sa_family;
    if (address->sa_family == AF_INET) {
        peer->port = in->sin_port;
        peer->in = in->sin_addr;
    } else if (address->sa_family == AF_INET6) {
        peer->port = in6->sin6_port;
        peer->scope = in6->sin6_scope_id;
        peer->in6 = in6->sin6_addr;
    } else {
        peer->family = AF_UNIX;
    }
}

/* Takes a slot, in CONN_FREE until the caller sets a phase; NULL without a free slot. */
static ALWAYS_INLINE struct fb_conn *take_slot(
    struct net *net, const struct sockaddr *peer, const struct conn_ops *ops, void *owner)
{
    struct loop *loop = &net->loop;
    struct source *source;
    struct fb_conn *conn;

    if (net_is_full(net))
        return NULL;
    source = source_get_sized(&loop->sources, sizeof(struct fb_conn));
    if (source == NULL)
        return NULL;

    conn = container_of(source, struct fb_conn, source);
    source->ops = &source_ops;
    source->io = loop->mechanism->io;
    source->io_state = loop->mechanism_state;
    conn->net = net;
    conn->traffic = &net->traffic;
    conn->ops = ops;
    conn->owner = owner;
    conn_peer_set(&conn->peer, peer);
    net->connection_n++;
    counters_add(net->counters, COUNTER_SLOTS, 1);
    return conn;
}

struct fb_conn *conn_create(
    struct net *net, int fd, const struct sockaddr *peer, const struct conn_ops *ops, void *owner)
{
    struct fb_conn *conn = take_slot(net, peer, ops, owner);

    assert(fd >= 0);
    if (conn == NULL)
        return NULL;
    conn->source.fd = fd;
    conn->number = net_next_number(net);
    net->client_n++;
    counters_add(net->counters, COUNTER_ACTIVE, 1);
    conn_set_phase(conn, CONN_OPENING);
    conn->source.events[EVENT_WRITE].ready = true; /* a new socket takes output */
    return conn;
}

/* Begins the connect(); returns 0, or the errno. */
static inline int begin_conn(struct fb_conn *conn, const struct sockaddr *address, socklen_t length,
    struct io_connect *options)
{
    struct io_result result = conn->source.io->connect(&conn->source, address, length, options);

    switch (result.status) {
    case IO_DONE:
        conn_trace(conn, "connected");
        conn_establish(conn);
        return 0;
    case IO_AGAIN_WRITE:
        conn_trace(conn, "connects");
        conn_watch_connect(conn);
        return 0;
    default:
        assert(result.error != 0);
        return result.error;
    }
}

/* The connect() could not begin. For want of a descriptor, the next turn tries again. */
static COLD void not_begun(struct fb_conn *conn, int error, const struct io_connect *options)
{
    bool lacks = conn->source.fd == -1 && (error == EMFILE || error == ENFILE);

    if (lacks && conn->ops->connect_again != NULL)
        conn_mark_dirty(conn);
    else
        conn_connect_failed(conn, error, options != NULL ? options->failed : IO_CONNECT);
}

inline struct fb_conn *conn_connect_later(struct net *net, const struct fb_conn *client,
    const struct sockaddr *address, const struct conn_ops *ops, void *owner, void *session)
{
    struct fb_conn *conn = take_slot(net, address, ops, owner);

    if (unlikely(conn == NULL))
        return NULL;
    conn_set_phase(conn, CONN_CONNECTING);
    conn->outgoing = 1;
    conn->owner_knows = 1;
    conn->session = session;
    conn->number = client != NULL ? client->number : net_next_number(net);
    if (client != NULL)
        conn->debug = client->debug;
    return conn;
}

void conn_connect_soon(struct fb_conn *conn)
{
    struct event *event = &conn->source.events[EVENT_WRITE];

    assert(conn->source.fd == -1);
    if (conn_is_connecting(conn) &&
        event->queue == QUEUE_NONE) /* otherwise its flush asks, or ends it */
        loop_post(&conn->net->loop, event, QUEUE_NEXT);
}

struct fb_conn *conn_connect(struct net *net, const struct fb_conn *client,
    const struct sockaddr *address, socklen_t length, struct io_connect *options,
    const struct conn_ops *ops, void *owner, void *session)
{
    struct fb_conn *conn = conn_connect_later(net, client, address, ops, owner, session);
    int error;

    if (unlikely(conn == NULL))
        return NULL;
    error = begin_conn(conn, address, length, options);
    if (unlikely(error == EMFILE || error == ENFILE) && client != NULL && net_free_spare(net))
        error = begin_conn(conn, address, length, options);
    if (likely(error == 0 && !conn_has_failed(conn)))
        return conn;
    if (error != 0)
        not_begun(conn, error, options);
    if (conn_has_failed(conn) || conn_lacks_descriptor(conn))
        conn_postpone_flush(conn); /* an owner may try again at once: postpone to the next turn */
    return conn;
}

void conn_connect_again(struct fb_conn *conn, const struct sockaddr *address, socklen_t length,
    struct io_connect *options)
{
    int error;

    assert(conn->source.fd == -1 && conn_is_connecting(conn));
    error = begin_conn(conn, address, length, options);
    if (error != 0)
        conn_connect_failed(conn, error, options != NULL ? options->failed : IO_CONNECT);
}

void conn_take_over(struct fb_conn *conn, struct fb_conn *from)
{
    struct loop *loop = &conn->net->loop;

    assert(conn->source.fd == -1 && conn_is_connecting(conn));
    assert(from->outgoing && from->in == NULL && from->out == NULL && from->pipe == NULL);
    source_move(loop, &from->source, &conn->source);
    conn_end(from, FB_FINISHED);
    conn_establish(conn);
    if (conn->source.held)
        conn_mark_dirty(conn);
}

void conn_reopen(struct fb_conn *conn, const struct conn_ops *ops, void *owner)
{
    assert(conn->outgoing && conn->in == NULL && conn->out == NULL && conn->pipe == NULL);
    conn_set_phase(conn, CONN_OPENING);
    conn->ops = ops;
    conn->owner = owner;
    conn->received = conn->sent = 0;
    loop_unpost(&conn->net->loop, &conn->source.events[EVENT_READ]);
    conn_open_soon(conn);
}

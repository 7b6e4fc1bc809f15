/* SPDX-License-Identifier: BSD-2-Clause */
/* The slots of connections: taken, and given what the loop runs when something happens on one.
 *
 * Responsible for what all connections begin with. Never moves bytes. Invariant: a slot that is
 * given to a caller holds nothing of its last connection. */
#include "net/conn_private.h"

#include <string.h>

/* Every idle connection costs one slot and its protocol's state, and nothing else. */
static_assert(sizeof(struct fb_conn) <= 248, "an idle connection has become dearer");

static const struct source_ops conn_source_ops = {
    .run = { [EVENT_READ] = conn_run_read, [EVENT_WRITE] = conn_run_write },
    .debug = DEBUG_BUILD ? conn_debug_event : NULL,
    .wants_broken = true,
};

struct fb_conn *conn_take_slot(
    struct net *net, const struct sockaddr *peer, const struct conn_ops *ops, void *owner)
{
    struct loop *loop = &net->loop;
    struct source *source;
    struct fb_conn *conn;

    assert(net->connection_n <= net->connections_max + NET_OVERDRAFT);
    if (net->connection_n >= net->connections_max + net->overdraft)
        return NULL;
    source = source_get(&loop->sources);
    if (source == NULL)
        return NULL;

    conn = container_of(source, struct fb_conn, source);
    assert(conn->phase == CONN_FREE && conn->in == NULL && conn->out == NULL);
    source->ops = &conn_source_ops;
    source->io = loop->mechanism->io;
    source->io_state = loop->mechanism_state;
    conn->net = net;
    conn->ops = ops;
    conn->owner = owner;
    conn_peer_set(&conn->peer, peer);
    net->connection_n++;
    return conn;
}

struct fb_conn *conn_create(
    struct net *net, int fd, const struct sockaddr *peer, const struct conn_ops *ops, void *owner)
{
    struct fb_conn *conn = conn_take_slot(net, peer, ops, owner);

    assert(fd >= 0);
    if (conn == NULL)
        return NULL;
    conn->source.fd = fd;
    conn->number = net_next_number(net);
    net->client_n++;
    counters_add(net->counters, COUNTER_ACTIVE, 1);
    conn_establish(conn);
    return conn;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The slots of connections: taken, and given what the loop runs when something happens on one.
 *
 * Responsible for what all connections begin with. Never moves bytes. Invariant: a slot that is
 * given to a caller holds nothing of its last connection. */
#include "net/conn_private.h"

/* Every idle connection costs one slot and its protocol's state, and nothing else. */
static_assert(sizeof(struct fb_conn) <= 248, "an idle connection has become dearer");

const struct source_ops conn_source_ops = {
    .run = { [EVENT_READ] = conn_run_read, [EVENT_WRITE] = conn_run_write },
    .debug = DEBUG_BUILD ? conn_debug_event : NULL,
    .wants_broken = true,
};

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
    conn_set_phase(conn, CONN_OPENING);
    conn->source.events[EVENT_WRITE].ready = true; /* a new socket takes output */
    return conn;
}

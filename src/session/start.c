/* SPDX-License-Identifier: BSD-2-Clause */
/* The start of a client's session.
 *
 * Responsible for which server an accepted connection belongs to, and whether it is debugged. Never
 * calls the protocol; its `opened` runs later. Invariant: the descriptor is the connection's, or
 * closed. */
#include "base/compiler.h"
#include "os/descriptor.h"
#include "session/conn.h"
#include "session/session.h"

#include <assert.h>

/* Finds the binding of the address that the client connected to, among several. */
static COLD struct binding *find_binding_of_address(struct port *port, int fd)
{
    struct binding *first = STAILQ_FIRST(&port->bindings), *binding;
    struct address local = { .length = sizeof(local.un) };

    if (getsockname(fd, &local.any, &local.length) == -1)
        return first;
    STAILQ_FOREACH (binding, &port->bindings, link)
        if (address_equal(&binding->address, &local))
            return binding;
    return first;
}

static struct binding *find_binding(struct port *port, int fd)
{
    struct binding *first = STAILQ_FIRST(&port->bindings);

    CHECK_KIND(port, PORT_KIND);
    CHECK_KIND(first, BINDING_KIND);
    return likely(!port->several) ? first : find_binding_of_address(port, fd);
}

static bool is_debugged(const struct stream *stream, const struct sockaddr *peer)
{
    for (unsigned i = 0; i < stream->debug_n; i++)
        if (address_block_matches(&stream->debug[i], peer))
            return true;
    return false;
}

struct fb_conn *session_start(
    struct stream *stream, struct port *port, int fd, const struct sockaddr *peer)
{
    struct binding *binding = find_binding(port, fd);
    struct fb_conn *conn = conn_create(&stream->net, fd, peer, binding->ops, binding);

    if (conn == NULL) {
        descriptor_discard(fd);
        return NULL;
    }
    session_set_phase(conn, SESSION_NEW);
    if (binding->server->connects)
        net_reserve(&stream->net, 1);
    if (unlikely(stream->debug_n > 0))
        conn->debug = is_debugged(stream, peer);
    counters_add(stream->net.counters, COUNTER_HANDLED, 1);
    return conn;
}

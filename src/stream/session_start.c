/* SPDX-License-Identifier: BSD-2-Clause */
/* The start of a client's session.
 *
 * Responsible for which server an accepted connection belongs to, and whether it is debugged. Never
 * calls the protocol; its `opened` runs later. Invariant: the descriptor is the connection's, or
 * closed. */
#include "stream/session.h"

#include <assert.h>
#include <unistd.h>

/* Finds the binding of the address that the client connected to. */
static struct fb_binding *find_binding(struct fb_port *port, int fd)
{
    struct fb_binding *first = STAILQ_FIRST(&port->bindings), *binding;
    struct fb_address local = { .length = sizeof(local.un) };

    assert(first != NULL);
    if (!port->several || getsockname(fd, &local.any, &local.length) == -1)
        return first;
    STAILQ_FOREACH (binding, &port->bindings, link)
        if (fb_address_equal(&binding->address, &local))
            return binding;
    return first;
}

static bool is_debugged(const struct fb_stream *stream, const struct sockaddr *peer)
{
    for (unsigned i = 0; i < stream->debug_n; i++)
        if (fb_address_block_matches(&stream->debug[i], peer))
            return true;
    return false;
}

struct fb_conn *fb_session_start(
    struct fb_stream *stream, struct fb_port *port, int fd, const struct sockaddr *peer)
{
    struct fb_binding *binding = find_binding(port, fd);
    struct fb_conn *conn = fb_conn_create(&stream->net, fd, peer, &fb_session_ops, binding);

    if (conn == NULL) {
        close(fd);
        return NULL;
    }
    conn->debug = is_debugged(stream, peer);
    fb_count(stream->net.counters, FB_HANDLED, 1);
    return conn;
}

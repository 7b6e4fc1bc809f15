/* SPDX-License-Identifier: BSD-2-Clause */
/* The address of a connection's peer as its slot has it: shorter than the system's form.
 *
 * Responsible for both directions between the two. Never asks the kernel. */
#include "net/conn.h"

#include <assert.h>

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

void conn_peer_of(const struct conn_peer *peer, struct address *out)
{
    assert(peer->family == AF_INET || peer->family == AF_INET6 || peer->family == AF_UNIX);
    out->length = 0; /* for an unnamed unix socket */
    out->any.sa_family = peer->family;
    if (peer->family == AF_INET) {
        out->length = sizeof(out->in);
        out->in = (struct sockaddr_in) {
            .sin_family = AF_INET, .sin_port = peer->port, .sin_addr = peer->in
        };
    } else if (peer->family == AF_INET6) {
        out->length = sizeof(out->in6);
        out->in6 = (struct sockaddr_in6) {
            .sin6_family = AF_INET6,
            .sin6_port = peer->port,
            .sin6_addr = peer->in6,
            .sin6_scope_id = peer->scope,
        };
    }
}

void conn_peer_address(const struct fb_conn *conn, struct address *out)
{
    conn_peer_of(&conn->peer, out);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's sessions: connections with their server's protocol. */
#pragma once

#include "net/conn.h"
#include "shm/shared.h"
#include "stream/server.h"

/* Protocols that one daemon can have. */
#define FB_PROTOCOLS_MAX 64

struct fb_stream {
    struct fb_net net; /* the first member */
    struct fb_shared *shared;
    const struct fb_address_block *debug; /* debug_connection */
    unsigned debug_n;
    /* each protocol's states, at the index of the connection's slot; mapped when first needed */
    struct {
        char *base;
        size_t size; /* of the mapping */
    } slabs[FB_PROTOCOLS_MAX];
};

static inline struct fb_stream *fb_stream_of(const struct fb_conn *conn)
{
    return fb_container(conn->net, struct fb_stream, net);
}

/* -1 after an emerg line, with nothing left to undo. */
int fb_stream_init(struct fb_stream *stream, const struct fb_net_options *options,
    struct fb_shared *shared, const struct fb_address_block *debug, unsigned debug_n);
/* No connection is open any more. */
void fb_stream_done(struct fb_stream *stream);

/* Starts a session on `fd`, which it owns from now on; its protocol's `opened` runs later, from the
 * loop. NULL without a free slot, and then the descriptor is closed. */
struct fb_conn *fb_session_start(
    struct fb_stream *stream, struct fb_port *port, int fd, const struct sockaddr *peer);

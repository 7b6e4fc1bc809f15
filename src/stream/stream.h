/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's sessions: connections with their server's protocol. */
#pragma once

#include "net/conn.h"
#include "shm/shared.h"
#include "stream/server.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

/* Protocols that one daemon can have. */
#define FB_PROTOCOLS_MAX 64

struct fb_side;

struct fb_stream {
    struct fb_net net; /* the first member */
    struct fb_shared *shared;
    struct fb_slot_id slot;               /* this worker's */
    const struct fb_address_block *debug; /* debug_connection */
    unsigned debug_n;
    /* each protocol's states, at the index of the connection's slot; mapped when first needed */
    struct {
        char *base;
        size_t size; /* of the mapping */
    } slabs[FB_PROTOCOLS_MAX];
    TAILQ_HEAD(fb_kept, fb_side) kept; /* connections to servers that nobody uses */
    RB_HEAD(fb_named, fb_side) named;  /* connections that others may have a reference of */
    uint64_t last_name;
    bool draining;         /* it takes no more clients */
    uint64_t deadline_at;  /* when it closes those that it has, monotonic ms; 0: never */
    uint64_t spread_until; /* by when those that are idle are closed */
    struct fb_timer drain;
    /* A protocol has used a connection that had ended; NULL: it is logged. */
    void (*misused)(struct fb_stream *stream, const char *call);
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

/* No more clients will come: tells the protocols, and closes idle sessions bit by bit (drain.c).
 * `deadline` in ms; 0: none. */
void fb_stream_drain(struct fb_stream *stream, uint64_t deadline);
void fb_stream_close_kept(struct fb_stream *stream);
/* All connections are in use: of those that are kept, the one that was not used for the longest time
 * ends; false where none is. */
bool fb_stream_drop_kept(struct fb_stream *stream);
/* fb_set_idle() */
void fb_session_set_idle(struct fb_conn *conn, bool idle);

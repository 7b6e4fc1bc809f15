/* SPDX-License-Identifier: BSD-2-Clause */
/* The sessions of one worker: connections with their server's protocol.
 *
 * Responsible for the protocols' states of connections, for the lists of connections that are kept
 * or have names, and for the drain. Never accepts. Invariant: a connection's state lies in its
 * protocol's slab at the index of its slot. */
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
    /* states of the protocols, each at the index of the slot; mapped when first needed */
    struct {
        char *base;
        size_t size; /* bytes of the mapping */
    } slabs[FB_PROTOCOLS_MAX];
    TAILQ_HEAD(fb_kept, fb_side) kept; /* keepalive pool: the last that was used in front */
    RB_HEAD(fb_named, fb_side) named;  /* connections that others may have a reference of */
    uint64_t last_name;
    bool draining;         /* the worker takes no more clients */
    uint64_t deadline_at;  /* when all sessions are closed, monotonic ms; 0: never */
    uint64_t spread_until; /* by when idle sessions are closed */
    struct fb_timer drain;
    /* Called when a protocol uses a connection that has ended; NULL: that is logged. */
    void (*misused)(struct fb_stream *stream, const char *call);
};

static inline struct fb_stream *fb_stream_of(const struct fb_conn *conn)
{
    return fb_container(conn->net, struct fb_stream, net);
}

/* Returns -1 after an emerg line, with nothing left to undo. */
int fb_stream_init(struct fb_stream *stream, const struct fb_net_options *options,
    struct fb_shared *shared, const struct fb_address_block *debug, unsigned debug_n);
/* Requires that no connection is open any more. */
void fb_stream_done(struct fb_stream *stream);

/* session_start.c: Starts a session on `fd`, which it owns from now on; its protocol's `opened`
 * runs later, from the loop. NULL without a free slot, and then the descriptor is closed. */
struct fb_conn *fb_session_start(
    struct fb_stream *stream, struct fb_port *port, int fd, const struct sockaddr *peer);

/* drain.c: Tells the protocols that no more clients will come, and closes idle sessions bit by bit.
 * `deadline` in ms; 0: none. */
void fb_stream_drain(struct fb_stream *stream, uint64_t deadline);
/* fb_set_idle() */
void fb_session_set_idle(struct fb_conn *conn, bool idle);

/* keepalive.c: Closes the connections of the keepalive pool. */
void fb_stream_close_kept(struct fb_stream *stream);
/* Ends the connection of the pool that was not used for the longest time, to free a slot; false
 * where the pool is empty. */
bool fb_stream_drop_kept(struct fb_stream *stream);

/* session_check.c: Asserts the invariants of all connections and sessions; between callbacks. */
void stream_check(const struct fb_stream *stream);

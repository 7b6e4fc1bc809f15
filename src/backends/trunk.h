/* SPDX-License-Identifier: BSD-2-Clause */
/* Trunks: interchangeable connections of a worker to one target, with the same operations, key and
 * options of sockets: any may serve the next user.
 *
 * Responsible for the limit of connections, for the idle connections, and for the queue.
 * Never connects. Invariant: a trunk lives as long as a connection of it does, also one that
 * waits; conn_n are those that do not wait. */
#pragma once

#include "net/target.h"
#include "session/conn.h"

struct trunk {
    unsigned kind;
    RB_ENTRY(trunk) node;
    /* common to its connections */
    struct fb_target target;
    const fb_ops *ops;
    struct address local; /* length 0: the kernel's choice */
    int receive_buffer;
    uint32_t flags; /* FB_CONNECT_... that its sockets are given */
    /* the latest options */
    uint32_t limit, queue; /* of connections, 0: none; of those that wait */
    uint64_t age;          /* ms after which a connection is not kept; 0: no limit */

    uint32_t conn_n, waiting_n;
    bool held;                                     /* by the call that gets it */
    TAILQ_HEAD(trunk_list, session_reuse) waiting; /* the first in front */
    struct trunk_list idle;                        /* the latest use in front */
    size_t key_n;
    uint8_t key[];
};

/* Flags of fb_connect_options that sockets are given. */
#define TRUNK_FLAGS (FB_CONNECT_TRANSPARENT | FB_CONNECT_TCP_KEEPALIVE)

/* Whether these options need a trunk. */
static inline bool trunk_is_wanted(const fb_connect_options *options)
{
    return options->local != NULL || options->age > 0 ||
           (options->receive_buffer | options->key_n | options->limit |
               (options->flags & TRUNK_FLAGS)) != 0;
}
/* Returns the trunk of these options, made where there is none; NULL without memory. It lasts until
 * the caller drops it, at least, whatever becomes of its connections. */
struct trunk *trunk_get(struct stream *stream, const struct fb_target *target, const fb_ops *ops,
    const fb_connect_options *options);
/* Lets go of a trunk, which is freed unless a connection has it. */
void trunk_drop(struct stream *stream, struct trunk *trunk);

/* Whether a new connection has to wait, because as many as may be are there, or others wait. */
bool trunk_is_full(const struct trunk *trunk);
/* Counts a connection, which leaves the queue if it was waiting. */
void trunk_enter(struct session_reuse *reuse, struct trunk *trunk);
/* Puts a connection at the end of the queue; `limit` is reached. */
void trunk_wait(struct session_reuse *reuse, struct trunk *trunk);
/* Takes an ending or leaving connection out of the trunk. */
void trunk_leave(struct stream *stream, struct session_reuse *reuse);
/* Puts an idle connection, and takes it out. */
void trunk_put(struct session_reuse *reuse);
void trunk_take(struct session_reuse *reuse);
/* Lets the first that waits look for a connection, if there may be one. Where it is just ending,
 * its end wakes the next. */
void trunk_wake(struct trunk *trunk);
/* Fills in the options of the trunk's sockets before connect(); NULL: no options. */
struct io_connect *trunk_options(const struct trunk *trunk, struct io_connect *options);
/* Whether the connection is too old to be kept. */
bool trunk_is_old(const struct fb_conn *conn, const struct trunk *trunk);
/* Asserts what holds of all trunks. */
void trunk_check_all(const struct stream *stream);

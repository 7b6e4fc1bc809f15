/* SPDX-License-Identifier: BSD-2-Clause */
/* The deadline of a connection, of which each has one at most: its owner's, or that of lingering.
 *
 * Setting one costs the same however many there are, and putting it off, which each message does,
 * is a store. So is setting one of a second or more, as most connections end before theirs: it is
 * left aside, and entered into the wheel when half of its time has passed. The wheel belongs to the
 * net; one timer of the loop drives it, and no deadline is missed by more than the turn of the loop
 * takes, unless very many are reached at once: these leave others their turn. */
#pragma once

#include "event/timer.h"

#include <stdint.h>

struct fb_conn;
struct net;

/* The latest deadline, in ms from now: more than 24 days. */
#define CONN_DEADLINE_MOST INT32_MAX
/* The least, in ms, that is left aside. */
#define CONN_DEADLINE_ASIDE 1000
#define CONN_WHEEL_LEVELS 8 /* the last reaches as far as any clock */

struct conn_wheel {
    uint64_t now;  /* ms: where buckets are counted from; not after the loop's clock */
    uint64_t next; /* ms: no bucket that is used begins before; UINT64_MAX: none is used */
    uint64_t used[CONN_WHEEL_LEVELS];       /* bits: buckets that hold connections */
    uint32_t first[CONN_WHEEL_LEVELS * 64]; /* the first slot of each bucket; 0: none */
    void (*expired)(struct fb_conn *conn);
    struct timer timer; /* for `next` */
    struct {
        uint64_t at;        /* ms: when the next begins; UINT64_MAX: nothing was left aside since */
        uint32_t index;     /* of the slot that is looked at next; 0: no look is under way */
        struct timer timer; /* for `at`, or to go on */
    } look;                 /* for deadlines that were left aside */
};

void conn_wheel_init(struct conn_wheel *wheel, void (*expired)(struct fb_conn *conn));
/* Requires that no connection has a deadline. */
void conn_wheel_done(struct net *net);
/* Looks for deadlines that were left aside from this time of the monotonic clock on. */
void conn_wheel_look_at(struct net *net, uint64_t at);
/* Asserts that the buckets are in order and hold `timed_n` connections. */
void conn_wheel_check(const struct net *net, uint32_t timed_n);

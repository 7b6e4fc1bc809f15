/* SPDX-License-Identifier: BSD-2-Clause */
/* The deadline of a connection, of which each has one at most: its owner's, or that of lingering.
 *
 * Setting one costs the same however many there are, and putting it off, which each message does,
 * is a store. The wheel that holds them belongs to the net; one timer of the loop drives it, and no
 * deadline is missed by more than the turn of the loop takes, unless very many are reached at once:
 * these leave others their turn. */
#pragma once

#include "event/timer.h"

#include <stdint.h>

struct fb_conn;
struct net;

/* The latest deadline, in ms from now: more than 24 days. */
#define CONN_DEADLINE_MOST INT32_MAX
#define CONN_WHEEL_LEVELS 8 /* the last reaches as far as any clock */

struct conn_wheel {
    uint64_t now;  /* ms: where buckets are counted from; not after the loop's clock */
    uint64_t next; /* ms: no bucket that is used begins before; UINT64_MAX: none is used */
    uint64_t used[CONN_WHEEL_LEVELS];       /* bits: buckets that hold connections */
    uint32_t first[CONN_WHEEL_LEVELS * 64]; /* the first slot of each bucket; 0: none */
    void (*expired)(struct fb_conn *conn);
    struct timer timer; /* for `next` */
};

void conn_wheel_init(struct conn_wheel *wheel, void (*expired)(struct fb_conn *conn));
/* Requires that no connection has a deadline. */
void conn_wheel_done(struct net *net);
/* Asserts that the buckets are in order and hold `timed_n` connections. */
void conn_wheel_check(const struct net *net, uint32_t timed_n);

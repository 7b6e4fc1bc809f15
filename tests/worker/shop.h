/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of workers share: a worker of a configuration that was made by hand, with an echo
 * protocol, by default on the simulated kernel. */
#pragma once

#include "process/channel.h"
#include "support/fake.h"
#include "support/test.h"
#include "worker/commands.h"
#include "worker/worker.h"

#define SHOP_LISTENERS 4
#define SHOP_DELAY 500 /* accept_mutex_delay, ms */

struct shop_options {
    const struct mechanism *mechanism; /* NULL: fake_edge */
    uint32_t connections;
    unsigned processes; /* of which this is number `index`; 0: a single process */
    unsigned index;
    bool mutex, multi_accept;
    unsigned reuseport; /* sockets of the listener; 0: one without reuseport */
    int64_t shutdown_timeout;
};

struct shop {
    struct fb_worker worker; /* the first member */
    struct heritage heritage;
    struct cycle cycle;
    struct shared *shared;
    struct log_target target;
    char text[16384];
    struct listener *listener;
    struct fake_socket *doors[SHOP_LISTENERS]; /* the sockets of the listener */
    struct server server;
    struct binding binding;
    struct port port;
    int master; /* the other end of the channel; -1 in a single process */
    /* what has happened, a letter each: 'w' a wait, 'o' a session opened, 'c' closed, and what a
       test adds itself */
    char order[256];
    unsigned openings, closings;
    fb_reason reason;
    fb_conn *conn; /* the latest */
};

/* A worker that accepts. */
struct shop *shop_open(const struct shop_options *options);
/* ... that has not been told to accept. */
struct shop *shop_prepare(const struct shop_options *options);
/* Fails if a line was logged that no test has asked for. */
void shop_close(struct shop *shop);
/* What was logged since the last time. */
const char *shop_logged(struct shop *shop);
void shop_note(struct shop *shop, char letter);

/* A client at the first listener. */
struct fake_socket *shop_visit(struct shop *shop);
/* So many at once, which nobody looks at later. */
void shop_crowd(struct shop *shop, unsigned n);

void shop_turn(struct shop *shop);
/* Turns until so many sessions are open; fails when that does not happen. */
void shop_turn_until_open(struct shop *shop, unsigned n);

/* Another worker, and what the master is told; the kind of the next message, or 0. */
struct slot_id shop_rival(struct shop *shop);
unsigned shop_told(struct shop *shop);

static inline bool shop_holds_mutex(const struct shop *shop)
{
    return shop->shared->accept_mutex.owner != 0;
}

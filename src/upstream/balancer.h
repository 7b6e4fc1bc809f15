/* SPDX-License-Identifier: BSD-2-Clause */
/* Balancers: a balancer chooses among the usable peers of a group for a session. A new balancer is
 * a file and a row of balancers.def. */
#pragma once

#include "upstream/choice.h"

struct balancer {
    const char *name;
    /* Returns the next peer for the session to try, allowed by choice_may_use(), or NULL; called
     * once for the primaries, then perhaps for the backups, in groups of several peers. In a zone
     * no other worker chooses in the group meanwhile. */
    struct peer *(*choose)(struct choice *choice);
    /* Frees the cache of a list; or NULL. */
    void (*forget)(struct peers *peers);
    bool takes_backup, takes_slow_start; /* servers may have these parameters */
};

const struct balancer *balancer_find(const char *name);

#define BALANCER(name) extern const struct balancer balancer_##name;
#include "upstream/balancers.def"
#undef BALANCER

/* The smooth weighted round robin, the fallback of balancers. */
struct peer *round_robin_choose(struct choice *choice);

/* A turn of round robin, all zero at first: add the peers, then take the best. */
struct round_robin {
    struct peer *best; /* NULL: none was added */
    int64_t most, total;
};

void round_robin_add(struct round_robin *turn, const struct choice *choice, struct peer *peer);
struct peer *round_robin_take(const struct round_robin *turn);

/* A session's choice by a key or by chance is left to round robin after so many unusable peers. */
#define BALANCER_MISSES 21

/* Return the sum of the weights of the present tier, and the peer at a weight below the sum. */
uint64_t balancer_weight(const struct choice *choice);
struct peer *balancer_peer_at(const struct choice *choice, uint64_t weight);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Balancers: each chooses among the peers of a group that a session may use. A new one is a file
 * and a row of balancers.def. */
#pragma once

#include "upstream/choice.h"
#include "upstream/peers.h"

struct balancer {
    const char *name;
    /* Returns the peer that the session is to try next, one that choice_may_use() allows, or NULL
     * where it allows none; called once for the primaries, then perhaps for the backups. Where the
     * group has a zone no other worker chooses in it meanwhile. Not called for a group of a single
     * peer. */
    struct peer *(*choose)(struct choice *choice);
    /* Frees the cache of a list that has changed, or goes; NULL where there is none. */
    void (*forget)(struct peers *peers);
    bool takes_backup, takes_slow_start; /* servers may have these parameters */
};

/* Returns NULL where there is none of that name. */
const struct balancer *balancer_find(const char *name);

/* The rows of balancers.def. */
#define BALANCER(name) extern const struct balancer balancer_##name;
#include "upstream/balancers.def"
#undef BALANCER

/* The smooth weighted round robin, the fallback of balancers. */
struct peer *round_robin_choose(struct choice *choice);

/* A turn of it among some peers of a group, all zero at first: each is added, then one taken. */
struct round_robin {
    struct peer *best; /* NULL: none was added */
    int64_t most, total;
};

void round_robin_add(struct round_robin *turn, const struct choice *choice, struct peer *peer);
struct peer *round_robin_take(const struct round_robin *turn);

/* A session's choice that a key or chance makes is left to round robin after so many peers that may
 * not be used. */
#define BALANCER_MISSES 21

/* Return the sum of the weights of the present tier, and the peer at a weight below the sum. */
uint64_t balancer_weight(const struct choice *choice);
struct peer *balancer_peer_at(const struct choice *choice, uint64_t weight);

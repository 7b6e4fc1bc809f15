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

/* Those of the list, by name. */
#define BALANCER(name) extern const struct balancer balancer_##name;
#include "upstream/balancers.def"
#undef BALANCER

/* The smooth weighted round robin, which other balancers fall back to. */
struct peer *round_robin_choose(struct choice *choice);

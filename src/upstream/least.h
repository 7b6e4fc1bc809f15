/* SPDX-License-Identifier: BSD-2-Clause */
/* The load of a peer, as least_conn and least_time measure it. */
#pragma once

#include "upstream/balancer.h"

/* Returns how much a peer has to do. */
typedef uint32_t least_load(const struct choice *choice, const struct peer *peer);

/* The connections of the peer, of all workers that share its state. */
uint32_t least_conn_load(const struct choice *choice, const struct peer *peer);
/* The expected time of the peer for its connections and a new connection, in steps, so that nearly
 * equal peers take turns. */
uint32_t least_time_load(const struct choice *choice, const struct peer *peer);
/* Returns the peer of two that has less, `b` where both have the same. */
struct peer *least_of_two(
    const struct choice *choice, least_load *load, struct peer *a, struct peer *b);

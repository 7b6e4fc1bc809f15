/* SPDX-License-Identifier: BSD-2-Clause */
/* The load of a peer, as least_conn and least_time measure it. */
#pragma once

#include "upstream/balancer.h"

/* Returns how much a peer has to do. */
typedef uint32_t least_load(const struct choice *choice, const struct peer *peer);

/* The connections of the peer, of all workers with the shared state. */
uint32_t least_conn_load(const struct choice *choice, const struct peer *peer);
/* The expected time of the peer for its connections and a new connection, in steps, to let nearly
 * equal peers take turns. */
uint32_t least_time_load(const struct choice *choice, const struct peer *peer);
/* Returns the peer with the lesser load of two, `b` where the loads are equal. */
struct peer *least_of_two(
    const struct choice *choice, least_load *load, struct peer *a, struct peer *b);

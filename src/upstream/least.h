/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer with the least load for its weight, however a balancer measures the load. */
#pragma once

#include "upstream/balancer.h"

/* Returns how much a peer has to do. */
typedef uint32_t least_load(const struct choice *choice, const struct peer *peer);

/* Returns the peer, of those that the session may use; where several have the least, they take
 * turns by weighted round robin. */
struct peer *least_choose(struct choice *choice, least_load *load);
/* Returns the one of two peers that has less, `b` where both have the same. */
struct peer *least_of_two(
    const struct choice *choice, least_load *load, struct peer *a, struct peer *b);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The consistent hash, which gives few keys to other servers where one comes or goes. Its points
 * are those of Cache::Memcached::Fast and of nginx. */
#pragma once

#include "upstream/balancer.h"

/* Chooses by the key, which is not empty, among the primaries. */
struct peer *ketama_choose(struct choice *choice);
/* Frees the points of the list. */
void ketama_forget(struct peers *peers);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The load of a peer by the times that it has taken, and the tries that have not ended. */
#pragma once

#include "upstream/least.h"

/* Returns the time that the peer is expected to need for its connections and one more, in steps,
 * so that peers that differ by a little take turns. */
uint32_t least_time_load(const struct choice *choice, const struct peer *peer);

/* Note that the try has begun; and that `time` of it is known, or, with UPSTREAM_TIME_LAST_BYTE,
 * that it ends. */
void least_time_begin(struct choice *choice);
void least_time_end(struct choice *choice, enum upstream_time time);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps for tests: in memory shared with children, and the invariants of every map. */
#pragma once

#include "shm/map.h"
#include "shm/map_check.h"
#include "support/random.h"

#include <sys/types.h>

/* Zeroed memory shared with children, or fails the test. */
void *shared_memory(size_t size);

/* Makes a map in shared memory, and the handle of the current process, which is slot 0. */
struct shm_map *map_create(const struct shm_map_shape *shape);
void map_destroy(struct shm_map **map);
/* Makes the handle a forked child's. */
void map_join(struct shm_map *map, uint32_t slot, uint32_t serial);
/* Tells the map the death of the slot's process, as the master does. */
void map_bury(struct shm_map *map, uint32_t slot, uint32_t serial);

/* Fails the test unless exactly `capacity` keys fit, existing keys included. Nothing has expired,
 * and as many keys are there as before on return. */
void check_room(struct shm_map *map, uint32_t capacity);

#define MAP_CALL_EXPIRY_MS 10

/* Makes the first of a few calls, and returns the rest of the text: "+k5" sets k to 5, "+k5!" with
 * an expiry, "?k5" replaces the present value, or the absence, "&k5" adds 5, "<k5" appends 5, "-k"
 * deletes, "=k" deletes the present value, "~" sweeps, "#" counts. */
const char *map_call(struct shm_map *map, const char *text, uint64_t now);

/* Kills the child and waits; the child may have ended before. Returns the status. */
int kill_child(pid_t pid);
/* Waits for a child, required to exit with 0. */
void wait_for_child(pid_t pid);
/* fork(), with a child killed at the parent's end. */
pid_t fork_child(void);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps for tests: in memory that children share, and what must hold of every one. */
#pragma once

#include "shm/map.h"
#include "shm/map_check.h"
#include "support/random.h"

#include <sys/types.h>

/* Zeroed memory that is shared with children, or fails the test. */
void *shared_memory(size_t size);

/* Makes a map in such memory, and the handle of this process, which is slot 0. */
struct shm_map *map_create(const struct shm_map_shape *shape);
void map_destroy(struct shm_map **map);
/* Makes the handle another process's: a child that a test has forked. */
void map_join(struct shm_map *map, uint32_t slot, uint32_t serial);
/* Tells the map that this process has died, as the master does. */
void map_bury(struct shm_map *map, uint32_t slot, uint32_t serial);

/* Fails the test unless exactly `capacity` keys fit, those that are there included. Nothing has
 * expired, and as many keys are there as before when it returns. */
void check_room(struct shm_map *map, uint32_t capacity);

#define MAP_CALL_EXPIRY_MS 10

/* Makes the first of a few calls, and returns the rest of the text: "+k5" sets k to 5, "+k5!" with
 * an expiry, "?k5" replaces what is there, or what is not there, "&k5" adds 5, "<k5" appends it,
 * "-k" deletes, "=k" deletes what is there, "~" sweeps, "#" counts. */
const char *map_call(struct shm_map *map, const char *text, uint64_t now);

/* Kills the child and waits for it; it may have ended by itself. Returns its status. */
int kill_child(pid_t pid);
/* Waits for a child that must end with 0. */
void wait_for_child(pid_t pid);
/* fork(), with a child that does not outlive its parent. */
pid_t fork_child(void);

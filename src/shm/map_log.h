/* SPDX-License-Identifier: BSD-2-Clause */
/* The log of a map's changes, for workers that ask: for each shard a ring of the latest changes,
 * filled under the shard's lock. Readers take no lock, and have private positions. A change missing
 * in the log, because the writer died in between, or knows of no log, or because the ring has gone
 * round, is reported to readers as a loss. */
#pragma once

#include "shm/map.h"

enum shm_map_change {
    SHM_MAP_WAS_SET = 1,
    SHM_MAP_WAS_DELETED,
    SHM_MAP_LOST, /* any keys were changed */
    SHM_MAP_WAS_EXPIRED,
};

/* A reader's place. */
struct shm_map_reader {
    uint64_t positions[64]; /* read up to here in the shards' rings */
    uint64_t told[64];      /* states of shards with a reported loss */
};

/* A change that was read. */
struct shm_map_changed {
    enum shm_map_change what;
    const void *key; /* in the reader's room; NULL for SHM_MAP_LOST */
    size_t key_n;
};

/* With the shape of the map. */
extern const struct zone_kind shm_map_log_kind;

/* Logs the handle's writes in the memory of a log's zone; NULL: ends the logging. */
void shm_map_log_open(struct shm_map *map, void *memory);
/* Begins to read behind the latest change. */
void shm_map_log_begin(struct shm_map *map, struct shm_map_reader *reader);
/* Reads the next change; false when there is none. The room has key_max bytes. */
bool shm_map_log_next(
    struct shm_map *map, struct shm_map_reader *reader, void *room, struct shm_map_changed *out);
/* Looks now and then for unlogged changes, and repairs after deaths: the next read tells of a
 * loss. */
void shm_map_log_audit(struct shm_map *map, struct shm_map_reader *reader);
/* Asks for a bell: the next writer takes the wish, and rings. */
void shm_map_log_wish(struct shm_map *map, uint32_t slot);
/* Takes the wishes of 64 slots, from 64 * i on; a bit for each. */
uint64_t shm_map_log_take_wishes(struct shm_map *map, uint32_t i);

/* Writers, which hold the shard (map_write.c, map_shard.c). */

/* Returns the state of a shard: a number, growing with each change. */
uint64_t shm_map_log_state(const struct shm_map *map, uint32_t shard);
/* Logs a change, begun in this state; an expiry before the removal: a death repeats the record. */
void shm_map_log_put(struct shm_map *map, uint32_t shard, uint64_t before, enum shm_map_change what,
    uint64_t hash, const void *key, size_t key_n);
/* Skips a change without a record. */
void shm_map_log_skip(struct shm_map *map, uint32_t shard, uint64_t before);

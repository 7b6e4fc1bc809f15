/* SPDX-License-Identifier: BSD-2-Clause */
/* A hash map in shared memory, of a fixed number of entries. All workers may use it at once, and a
 * worker killed at any point of a call loses the call alone: an entry is published by one store,
 * and the next lock after a death repairs incomplete writes. A damaged shard is emptied. A process
 * looks through a shard at the first lock: later keys are not lost to earlier damage.
 *
 * Times are milliseconds since the epoch, by a clock common to all. An entry with a past expiry
 * (expires_ms <= now_ms, and not 0) counts as absent. */
#pragma once

#include "shm/table.h"
#include "shm/zone.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_MAP_CAPACITY_MAX (UINT32_C(1) << 30)
#define SHM_MAP_KEY_MAX 65535
#define SHM_MAP_VALUE_MAX (UINT32_C(16) << 20)
/* With `memory` an entry takes whole pages, given back when deleted: room costs nothing unused. */
#define SHM_MAP_UNIT 4096

/* An expiry: keeps the entry's expiry; a new entry has none. */
#define SHM_MAP_KEEP_EXPIRY UINT64_MAX

enum shm_map_status {
    SHM_MAP_OK,
    SHM_MAP_ABSENT,       /* no such key */
    SHM_MAP_CHANGED,      /* the key's version differs from the expected */
    SHM_MAP_FULL,         /* `capacity` keys are there, or `memory` is used, and none has expired */
    SHM_MAP_TOO_LARGE,    /* the key, the value, or the value for the room given */
    SHM_MAP_NOT_A_NUMBER, /* the value is not 8 bytes, or the sum does not fit into them */
    SHM_MAP_MORE,         /* a walk has found no key yet, and goes on */
};

struct shm_map_shape {
    uint32_t capacity;  /* keys; at least 1 */
    uint32_t key_max;   /* bytes; at least 1 */
    uint32_t value_max; /* bytes */
    uint32_t memory;    /* SHM_MAP_UNITs for all entries together; 0: no limit */
};

/* Counts of this process's repairs and logged changes. */
struct shm_map_mended {
    uint32_t emptied; /* shards emptied for damage */
    uint32_t rebuilt; /* damage repaired without a loss of keys */
    uint32_t taken;   /* locks whose holders stood still */
    uint32_t logged;  /* logged changes, which may ring bells; wraps */
};

/* A process's handle: the layout, derived from the shape, in memory no other process can write. */
struct shm_map {
    struct table table; /* entry_n: all laid out, with a spare entry per shard */
    struct shm_map_shape shape;
    uint32_t touched_most; /* the capacity, and the spare entries: no further entry is begun */
    uint64_t value_at;     /* in an entry's bytes */
    uint64_t page;         /* with `memory`: page size, the multiple of entries; else 0 */
    uint64_t seed[2];
    struct shm_map_header *header;
    struct shm_map_pool *pool;
    struct shm_map_shard *shards;
    _Atomic uint8_t *owners; /* begin with entry 1's */
    struct shm_map_log *log; /* NULL: no worker can ask for changes */
    struct zone_hold pool_hold;
    uint64_t checked; /* a bit per shard: checked by this process */
    bool pool_checked;
    uint64_t deaths;        /* sum of the dead serials at the last check */
    uint64_t short_ms;      /* begin of being full with fewer keys than fit; 0: not so */
    uint64_t audited_ms;    /* when it was then looked through, */
    uint64_t audit_wait_ms; /* time until it will be again */
    struct shm_map_mended mended;
};

/* A copy of an entry, in memory of the caller. */
struct shm_map_item {
    void *value; /* the caller's; NULL if room is 0 */
    size_t room;
    size_t n;         /* the value's length, however much was copied */
    uint64_t version; /* unique among the states of a key, and never 0 */
    uint64_t expires_ms;
};

extern const struct zone_kind shm_map_kind;

/* Whether a map made with one shape can be used with a second: with a different `memory`, unless
 * one is 0, and with a different capacity, as far as there is room. */
bool shm_map_fits(const struct shm_map_shape *made, const struct shm_map_shape *shape);
/* Makes a handle to a map in memory; the id is the calling process's. Handles to one map may differ
 * in `capacity` and `memory`, and obey their own. */
void shm_map_open(
    struct shm_map *map, void *memory, const struct shm_map_shape *shape, struct slot_id id);
/* Copies an entry: OK; ABSENT; TOO_LARGE, with as much of the value as fits. */
enum shm_map_status shm_map_get(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms, struct shm_map_item *item);
/* Sets a key: OK, with the new version unless NULL; FULL; TOO_LARGE. expires_ms 0: never. */
enum shm_map_status shm_map_set(struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms,
    const void *value, size_t n, uint64_t expires_ms, uint64_t *version);
/* Sets a key of the version `expected`, or (0) without an entry; else CHANGED. */
enum shm_map_status shm_map_replace(struct shm_map *map, const void *key, size_t key_n,
    uint64_t now_ms, uint64_t expected, const void *value, size_t n, uint64_t expires_ms,
    uint64_t *version);
/* Adds to an int64_t in the machine's byte order (absent: 0), and keeps the expiry: OK, with the
 * sum unless NULL; FULL; TOO_LARGE; NOT_A_NUMBER. */
enum shm_map_status shm_map_add(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms, int64_t by, int64_t *sum);
/* Deletes a key: OK; ABSENT. */
enum shm_map_status shm_map_delete(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms);
/* Deletes a key if the entry's version is `expected`, never 0: OK; ABSENT; CHANGED. */
enum shm_map_status shm_map_remove(
    struct shm_map *map, const void *key, size_t key_n, uint64_t now_ms, uint64_t expected);
/* Appends to a value, or sets an absent key: OK; FULL; TOO_LARGE, beyond value_max. */
enum shm_map_status shm_map_append(struct shm_map *map, const void *key, size_t key_n,
    uint64_t now_ms, const void *value, size_t n, uint64_t expires_ms);

/* A place in a walk; zeroes: the beginning. */
struct shm_map_cursor {
    uint64_t order; /* the last key's; keys go by a constant order of their hashes */
    uint64_t tie;   /* a second hash, never 0, for keys with equal orders */
};

/* Copies the next entry of a walk, and moves the cursor to it: OK; ABSENT behind the last, with the
 * cursor at the beginning; MORE: after many empty buckets another call goes on; TOO_LARGE, with as
 * much of the value as fits. A key that is there for all of the walk is met exactly once, whatever
 * is changed meanwhile. `key`, with room, gets the key. */
enum shm_map_status shm_map_next(struct shm_map *map, struct shm_map_cursor *cursor,
    uint64_t now_ms, struct shm_map_item *key, struct shm_map_item *item);
/* Gives expired entries back, and checks the shards not yet checked by this process. */
void shm_map_sweep(struct shm_map *map, uint64_t now_ms);
/* Sweeps at most so many shards, from *next on, and moves *next; waits for no lock. */
void shm_map_sweep_some(struct shm_map *map, uint64_t now_ms, uint32_t *next, uint32_t most);
/* Counts the entries, including expired entries not given back yet. */
uint32_t shm_map_count(struct shm_map *map);

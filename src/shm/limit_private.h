/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of limits in shared memory, for limit*.c.
 *
 * Keys fall into shards, and a shard's keys into buckets, the heads of chains of units. A shard has
 * a lock, a list of free units and units; nothing moves between shards. A key's unit has its hash,
 * its account and three cells; further cells are in separate units, with the number of the key's
 * unit. A cell has the count of one worker, in a word with its slot and serial.
 *
 * A unit's state has its kind, so that a rebuild makes buckets, chains and free list from the units
 * alone: after a holder has died, or stood still, or after damage.
 *
 * A robbed holder may go on at any time. Plain stores go to the holder's cells and reserved units
 * only, which stay reserved while the holder lives; all other words change by compare and exchange,
 * and never come back: heads and states have a growing number. */
#pragma once

#include "shm/limit.h"

#include <stdalign.h>

#define SHM_LIMIT_MAGIC 0x66626c6du
#define SHM_LIMIT_REVISION 1u
/* An account farther ahead of the time than this and any rate is invalid: a key is not given up for
 * the rates of a worker with a different configuration. */
#define SHM_LIMIT_AHEAD_NS UINT64_C(3600000000000)
/* The greatest difference between the turn clocks of two workers. */
#define SHM_LIMIT_SKEW_NS UINT64_C(1000000000)

/* Unit kinds, in the low half of a state. */
#define SHM_LIMIT_FREE 0u
#define SHM_LIMIT_KEY 0x6b657973u
#define SHM_LIMIT_CELLS 0x63656c6cu
/* The kind of a reserved unit, with the process's slot_incarnation() in the low bits. */
#define SHM_LIMIT_RESERVED 0x80000000u

#define SHM_LIMIT_WORDS 6
/* Words of a key's unit: hash (two), account, cells. */
#define SHM_LIMIT_ACCOUNT 2
#define SHM_LIMIT_FIRST_CELL 3

/* Units of a shard are numbered from 1, and 0 ends a chain. */
struct shm_limit_unit {
    _Atomic uint32_t next; /* in the bucket, among the key's units of cells, or among the free */
    /* in a key: first unit of cells, and a change count. In cells: unit of the key */
    _Atomic uint32_t more;
    _Atomic uint64_t words[SHM_LIMIT_WORDS];
    _Atomic uint64_t state; /* the kind, and a number that grows */
};

struct shm_limit_shard {
    alignas(CACHE_LINE) struct shm_lock lock;
    _Atomic uint64_t free;     /* the head of a chain */
    _Atomic uint32_t used;     /* units beyond were never touched, and are free as well */
    _Atomic uint32_t rebuilds; /* it wraps */
};

/* The pages that masters alone write. */
struct shm_limit_header {
    uint32_t magic, revision;
    struct shm_limit_shape shape;
    uint64_t seed[4];
    _Atomic uint32_t deaths; /* workers' deaths; it wraps */
    struct table_workers workers;
};

/* A cell has the serial (32 bits), the slot (11) and the count (21). */
#define SHM_LIMIT_COUNT_BITS (32 - SLOT_BITS)
#define SHM_LIMIT_COUNT_MASK ((UINT64_C(1) << SHM_LIMIT_COUNT_BITS) - 1)

static inline uint64_t shm_limit_cell(const struct shm_limit *limit, uint32_t n)
{
    struct slot_id id = limit->table.locker.id;

    assert(slot_id_is_valid(id));
    if (n == 0)
        return 0;
    return (uint64_t)id.serial << 32 | (uint64_t)id.slot << SHM_LIMIT_COUNT_BITS |
           (n < SHM_LIMIT_COUNT_MASK ? n : SHM_LIMIT_COUNT_MASK);
}

static inline uint32_t shm_limit_cell_count(uint64_t cell)
{
    return (uint32_t)(cell & SHM_LIMIT_COUNT_MASK);
}

static inline bool shm_limit_cell_is_own(const struct shm_limit *limit, uint64_t cell)
{
    struct slot_id id = limit->table.locker.id;

    return cell >> SHM_LIMIT_COUNT_BITS == ((uint64_t)id.serial << SLOT_BITS | id.slot);
}

/* Whether the cell's worker is alive, as published by masters. */
static inline bool shm_limit_cell_counts(const struct shm_limit *limit, uint64_t cell)
{
    uint32_t serial = (uint32_t)(cell >> 32);
    uint32_t slot = (uint32_t)cell >> SHM_LIMIT_COUNT_BITS;

    return serial != 0 && shm_limit_cell_count(cell) != 0 &&
           ZONE_LOAD(limit->header->workers.living[slot]) == serial;
}

static inline struct shm_limit_unit *shm_limit_unit_at(
    const struct shm_limit *limit, uint32_t shard, uint32_t index)
{
    assert(shard < limit->table.shard_n && table_is_index(&limit->table, index));
    return table_entry(&limit->table, shard, index);
}

/* The index in a key's `more`. */
#define SHM_LIMIT_INDEX_BITS 24
#define SHM_LIMIT_INDEX_MASK ((1u << SHM_LIMIT_INDEX_BITS) - 1)

/* Replaces a key's `more` after reading `seen`. */
static inline bool shm_limit_set_more(_Atomic uint32_t *more, uint32_t seen, uint32_t index)
{
    uint32_t next = ((seen >> SHM_LIMIT_INDEX_BITS) + 1) << SHM_LIMIT_INDEX_BITS | index;

    return atomic_compare_exchange_strong(more, &seen, next);
}

/* Replaces the low half of a head or a state, an index or a kind, after reading `seen`. */
static inline bool shm_limit_swap(_Atomic uint64_t *word, uint64_t seen, uint32_t low)
{
    uint64_t next = ((seen >> 32) + 1) << 32 | low;

    return atomic_compare_exchange_strong(word, &seen, next);
}

static inline uint32_t shm_limit_unit_kind(const struct shm_limit_unit *unit)
{
    return (uint32_t)ZONE_LOAD(unit->state);
}

static inline uint32_t shm_limit_reserved(const struct shm_limit *limit)
{
    return SHM_LIMIT_RESERVED | slot_incarnation(limit->table.locker.id);
}

/* Index of a unit's first cell; cells go up to SHM_LIMIT_WORDS. */
static inline int shm_limit_first_cell(uint32_t kind)
{
    return kind == SHM_LIMIT_KEY ? SHM_LIMIT_FIRST_CELL : 0;
}

/* Whether the account of a key still matters. */
static inline bool shm_limit_account_matters(
    const struct shm_limit *limit, const struct shm_limit_unit *key)
{
    uint64_t until_ns = ZONE_LOAD(key->words[SHM_LIMIT_ACCOUNT]);
    uint64_t most_ns =
        limit->rate_most_ns > SHM_LIMIT_AHEAD_NS ? limit->rate_most_ns : SHM_LIMIT_AHEAD_NS;

    return until_ns > limit->now_ns && until_ns - limit->now_ns <= most_ns;
}

RB_PROTOTYPE(shm_limit_counts, shm_limit_count, node, )

/* Units (limit_unit.c), within a shard held by the caller. */

/* The cells of a key. */
struct shm_limit_cells {
    _Atomic uint64_t *own;   /* the cell of this process; NULL: none */
    uint64_t own_word;       /* as read */
    _Atomic uint64_t *empty; /* a free cell; NULL: none */
    uint64_t empty_word;
    uint64_t others; /* sum of the other workers' counts */
};

/* Finds a key: OK; NONE; FAILED. */
enum table_step shm_limit_find(
    struct shm_limit *limit, const uint64_t key[2], struct table_place *place);
/* Adds a new key with sessions of this process: OK; NONE if the shard is full; FAILED. */
enum table_step shm_limit_add(struct shm_limit *limit, const uint64_t key[2], uint64_t account,
    uint32_t n, struct table_place *place);
/* Returns the nth unit of a key's cells, found in a chain; NULL: an impossible unit. */
struct shm_limit_unit *shm_limit_cells_at(
    const struct shm_limit *limit, const struct table_place *place, uint32_t index, uint32_t n);
/* Reads a key's cells; false where the cells are damaged. */
bool shm_limit_read_cells(
    struct shm_limit *limit, const struct table_place *place, struct shm_limit_cells *cells);
/* Publishes this process's count after reading the cells: OK; NONE without room; FAILED. */
enum table_step shm_limit_publish(struct shm_limit *limit, const struct table_place *place,
    const struct shm_limit_cells *cells, uint32_t n);
/* Gives an unneeded key up: OK; FAILED. */
enum table_step shm_limit_drop_idle(struct shm_limit *limit, const struct table_place *place);
/* Counts the touched units in the shard. */
uint32_t shm_limit_touched(const struct shm_limit *limit, uint32_t shard);

/* Repairs (limit_repair.c) of a held shard, which give up where the lock is lost. */

/* Rebuilds the shard from all units after damage, else from the touched units. */
void shm_limit_rebuild(struct shm_limit *limit, uint32_t shard, bool all);
/* Rebuilds a shard in which a step has failed, unless the lock was taken. */
void shm_limit_rebuild_damaged(struct shm_limit *limit, uint32_t shard);
/* Checks the lists, mends differences from this process's counts, gives up unneeded keys. */
void shm_limit_look(struct shm_limit *limit, uint32_t shard);
/* Gives up keys without a user, if there may be any; whether keys were given up. */
bool shm_limit_sweep_shard(struct shm_limit *limit, uint32_t shard);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Repairs of a shard. Buckets, chains and free list are rebuilt from the units, by their kinds,
 * and each process writes its own counts again. So neither a death within a call nor damage to
 * chains loses a count. */
#include "base/compiler.h"
#include "shm/limit_private.h"

#include <assert.h>

/* The time between two sweeps of a full shard for unneeded keys. */
#define SWEEP_NS UINT64_C(100000000)
#define SWEEP_AGAIN_NS UINT64_C(10000000) /* the same, where there were some */

static bool free_unit(struct shm_limit_unit *unit, uint64_t state)
{
    return shm_limit_set_kind(unit, state, SHM_LIMIT_FREE);
}

/* Whether a unit has a count of a living worker. */
static bool has_counts(
    const struct shm_limit *limit, const struct shm_limit_unit *unit, uint32_t kind)
{
    for (int i = shm_limit_first_cell(kind); i < SHM_LIMIT_WORDS; i++)
        if (shm_limit_cell_counts(limit, ZONE_LOAD(unit->words[i])))
            return true;
    return false;
}

/* Clears the cells of the dead, and returns whether any is left. */
static bool clean_cells(const struct shm_limit *limit, struct shm_limit_unit *unit, uint32_t kind)
{
    for (int i = shm_limit_first_cell(kind); i < SHM_LIMIT_WORDS; i++) {
        uint64_t word = ZONE_LOAD(unit->words[i]);

        if (word != 0 && !shm_limit_cell_counts(limit, word))
            atomic_compare_exchange_strong(&unit->words[i], &word, 0);
    }
    return has_counts(limit, unit, kind);
}

/* Puts a key's unit into the bucket that its hash says. A second unit of a key becomes cells of the
 * first; a unit beyond the longest chain is free. */
static void collect_key(struct shm_limit *limit, uint32_t shard, uint32_t index, uint64_t state)
{
    struct shm_limit_unit *unit = shm_limit_unit_at(limit, shard, index);
    uint64_t first = ZONE_LOAD(unit->words[0]), second = ZONE_LOAD(unit->words[1]);
    _Atomic uint64_t *bucket =
        shm_limit_bucket(limit, shard, table_bucket_of(&limit->table, first));
    uint64_t head = ZONE_LOAD(*bucket);
    uint32_t n = 0;

    assert(table_is_index(&limit->table, index));
    if (table_shard_of(&limit->table, first) != shard) {
        free_unit(unit, state);
        return;
    }
    for (uint32_t i = shm_limit_head_index(head); table_is_index(&limit->table, i);) {
        const struct shm_limit_unit *other = shm_limit_unit_at(limit, shard, i);

        if (ZONE_LOAD(other->words[0]) == first && ZONE_LOAD(other->words[1]) == second) {
            ZONE_STORE(unit->more, i);
            shm_limit_set_kind(unit, state, SHM_LIMIT_CELLS);
            return;
        }
        if (++n == TABLE_CHAIN_MAX) {
            free_unit(unit, state);
            return;
        }
        i = ZONE_LOAD(other->next);
    }
    clean_cells(limit, unit, SHM_LIMIT_KEY);
    shm_limit_set_more(&unit->more, ZONE_LOAD(unit->more), 0);
    ZONE_STORE(unit->next, shm_limit_head_index(head));
    shm_limit_set_head(bucket, head, index);
}

static bool collect_keys(struct shm_limit *limit, uint32_t shard, uint32_t n)
{
    assert(n <= limit->table.entry_n);
    for (uint32_t i = 0; i < limit->table.bucket_n; i++) {
        _Atomic uint64_t *bucket = shm_limit_bucket(limit, shard, i);

        if (!table_goes_on(&limit->table, i))
            return false;
        shm_limit_set_head(bucket, ZONE_LOAD(*bucket), 0);
    }
    for (uint32_t i = 1; i <= n; i++) {
        uint64_t state = ZONE_LOAD(shm_limit_unit_at(limit, shard, i)->state);

        if (!table_goes_on(&limit->table, i))
            return false;
        if (shm_limit_kind_of(state) == SHM_LIMIT_KEY)
            collect_key(limit, shard, i, state);
    }
    return true;
}

/* Links units of cells to keys again. */
static bool collect_cells(struct shm_limit *limit, uint32_t shard, uint32_t n)
{
    assert(n <= limit->table.entry_n);
    for (uint32_t i = 1; i <= n; i++) {
        struct shm_limit_unit *unit = shm_limit_unit_at(limit, shard, i), *key;
        uint64_t state = ZONE_LOAD(unit->state);
        uint32_t index = ZONE_LOAD(unit->more), more;

        if (!table_goes_on(&limit->table, i))
            return false;
        if (shm_limit_kind_of(state) != SHM_LIMIT_CELLS)
            continue;
        key = table_is_index(&limit->table, index) ? shm_limit_unit_at(limit, shard, index) : NULL;
        if (key == NULL || shm_limit_unit_kind(key) != SHM_LIMIT_KEY ||
            !clean_cells(limit, unit, SHM_LIMIT_CELLS)) {
            free_unit(unit, state);
            continue;
        }
        more = ZONE_LOAD(key->more);
        ZONE_STORE(unit->next, more & SHM_LIMIT_INDEX_MASK);
        shm_limit_set_more(&key->more, more, i);
    }
    return true;
}

/* Whether a key is idle; units of cells make a key needed. */
static bool is_idle(const struct shm_limit *limit, const struct shm_limit_unit *unit)
{
    return !has_counts(limit, unit, SHM_LIMIT_KEY) &&
           (ZONE_LOAD(unit->more) & SHM_LIMIT_INDEX_MASK) == 0 &&
           !shm_limit_account_matters(limit, ZONE_LOAD(unit->words[SHM_LIMIT_ACCOUNT]));
}

/* Unlinks an idle key from its chain. */
static enum table_visit discard_idle(struct table_place *at, void *arg)
{
    struct shm_limit *limit = arg;
    struct shm_limit_unit *unit = at->entry;
    _Atomic uint64_t *bucket = shm_limit_bucket(limit, at->shard, at->bucket);
    uint64_t state = ZONE_LOAD(unit->state);
    uint32_t next = ZONE_LOAD(unit->next);

    if (!is_idle(limit, unit) || !free_unit(unit, state))
        return TABLE_KEPT;
    if (at->before != 0)
        ZONE_STORE(*table_next(table_entry(&limit->table, at->shard, at->before)), next);
    else
        shm_limit_set_head(bucket, ZONE_LOAD(*bucket), next);
    return TABLE_REMOVED;
}

/* Rebuilds the chain of free units, with new states: a robbed holder that is about to reserve a
 * unit fails. */
static bool collect_free(struct shm_limit *limit, uint32_t shard, uint32_t n)
{
    struct shm_limit_shard *s = &limit->shards[shard];
    uint64_t head = ZONE_LOAD(s->free);
    uint32_t first = 0;

    assert(n <= limit->table.entry_n);
    for (uint32_t i = n; i > 0; i--) {
        struct shm_limit_unit *unit = shm_limit_unit_at(limit, shard, i);
        uint64_t state = ZONE_LOAD(unit->state);
        uint32_t kind = shm_limit_kind_of(state);

        if (!table_goes_on(&limit->table, i))
            return false;
        if (kind == SHM_LIMIT_KEY || kind == SHM_LIMIT_CELLS || shm_limit_is_kept(limit, kind) ||
            !free_unit(unit, state))
            continue;
        ZONE_STORE(unit->next, first);
        first = i;
    }
    if (!table_holds(&limit->table))
        return false;
    ZONE_STORE(s->used, n);
    return shm_limit_set_head(&s->free, head, first);
}

void shm_limit_rebuild(struct shm_limit *limit, uint32_t shard, bool all)
{
    struct shm_limit_shard *s = &limit->shards[shard];
    uint32_t n = all ? limit->table.entry_n : shm_limit_touched(limit, shard);

    assert(limit->table.hold.lock == &s->lock);
    if (!collect_keys(limit, shard, n) || !collect_cells(limit, shard, n) ||
        table_walk(&limit->table, shard, discard_idle, limit) == TABLE_NONE ||
        !collect_free(limit, shard, n))
        return;
    if (all) /* lost counts are known to their processes */
        ZONE_STORE(s->rebuilds, ZONE_LOAD(s->rebuilds) + 1);
}

void shm_limit_rebuild_damaged(struct shm_limit *limit, uint32_t shard)
{
    assert(limit->table.hold.lock == &limit->shards[shard].lock);
    if (!table_holds(&limit->table))
        return;
    limit->mended.rebuilt += !limit->visits[shard].unsure;
    shm_limit_rebuild(limit, shard, true);
}

/* Findings of a look. */
struct found {
    struct shm_limit *limit;
    uint32_t used;        /* units beyond it are in no chain */
    uint32_t keys, cells; /* units that buckets lead to */
    uint32_t idle;        /* unneeded keys, and units of cells */
    uint32_t kept;        /* units that another process has reserved */
    uint32_t left;        /* reserved units, left by a dead process or a failed call */
    bool damaged;
};

/* Counts a key's unit, and the units of cells. */
static enum table_visit count_key(struct table_place *at, void *arg)
{
    struct found *found = arg;
    const struct shm_limit_unit *unit = at->entry;
    uint32_t index = ZONE_LOAD(unit->more) & SHM_LIMIT_INDEX_MASK;

    if (at->index > found->used || shm_limit_unit_kind(unit) != SHM_LIMIT_KEY)
        return TABLE_DAMAGED;
    found->keys++;
    found->idle += is_idle(found->limit, unit);
    for (uint32_t n = 0; index != 0; n++) {
        unit = shm_limit_cells_at(found->limit, at, index, n);
        if (unit == NULL || index > found->used)
            return TABLE_DAMAGED;
        found->cells++;
        found->idle += !has_counts(found->limit, unit, SHM_LIMIT_CELLS);
        index = ZONE_LOAD(unit->next);
    }
    return TABLE_KEPT;
}

/* Counts the free units, as far as the chain is whole. */
static uint32_t count_free(const struct shm_limit *limit, uint32_t shard, struct found *found)
{
    uint32_t n = 0, index = shm_limit_head_index(ZONE_LOAD(limit->shards[shard].free));

    for (; index != 0 && !found->damaged; n++) {
        const struct shm_limit_unit *unit;

        found->damaged = index > found->used || n == found->used;
        if (found->damaged)
            return n;
        unit = shm_limit_unit_at(limit, shard, index);
        found->damaged = shm_limit_unit_kind(unit) != SHM_LIMIT_FREE;
        index = ZONE_LOAD(unit->next);
    }
    return n;
}

/* Counts the reserved units: the holder has none, unless the last call has failed. */
static void count_reserved(const struct shm_limit *limit, uint32_t shard, struct found *found)
{
    for (uint32_t i = shm_limit_touched(limit, shard); i > 0; i--) {
        uint32_t kind = shm_limit_unit_kind(shm_limit_unit_at(limit, shard, i));

        if (shm_limit_is_kept(limit, kind))
            found->kept++;
        else if (kind & SHM_LIMIT_RESERVED)
            found->left++;
    }
}

/* Compares the shard with itself; false where the lock was taken. */
static bool look_through(struct shm_limit *limit, uint32_t shard, struct found *found)
{
    uint32_t used = ZONE_LOAD(limit->shards[shard].used), free_n;
    enum table_step step = TABLE_OK;

    *found =
        (struct found) { .limit = limit, .used = used, .damaged = used > limit->table.entry_n };
    if (used > 0 && !found->damaged)
        step = table_walk(&limit->table, shard, count_key, found);
    if (step == TABLE_NONE)
        return false;
    found->damaged = found->damaged || step == TABLE_FAILED;
    free_n = count_free(limit, shard, found);
    count_reserved(limit, shard, found);
    found->damaged =
        found->damaged || found->keys + found->cells + found->kept + found->left + free_n != used;
    return table_holds(&limit->table);
}

/* Returns the key's unit of a unit with cells; NULL if there is none. */
static const struct shm_limit_unit *key_of(
    const struct shm_limit *limit, uint32_t shard, const struct shm_limit_unit *unit)
{
    uint32_t kind = shm_limit_unit_kind(unit), index = ZONE_LOAD(unit->more);

    if (kind == SHM_LIMIT_KEY)
        return unit;
    return kind == SHM_LIMIT_CELLS && table_is_index(&limit->table, index)
               ? shm_limit_unit_at(limit, shard, index)
               : NULL;
}

/* Compares this process's cells in a unit with the private counts. */
static void compare_unit(struct shm_limit *limit, uint32_t shard, struct shm_limit_unit *unit)
{
    const struct shm_limit_unit *key = key_of(limit, shard, unit);
    struct shm_limit_count *own, wanted;

    if (key == NULL)
        return;
    wanted.key[0] = ZONE_LOAD(key->words[0]);
    wanted.key[1] = ZONE_LOAD(key->words[1]);
    for (int i = shm_limit_first_cell(shm_limit_unit_kind(unit)); i < SHM_LIMIT_WORDS; i++) {
        uint64_t word = ZONE_LOAD(unit->words[i]), is;

        if (!shm_limit_cell_is_own(limit, word))
            continue;
        own = RB_FIND(shm_limit_counts, &limit->counts, &wanted);
        is = own != NULL && own->seen != limit->look ? shm_limit_cell(limit, own->n) : 0;
        if (own != NULL)
            own->seen = limit->look;
        if (is == word || !table_holds(&limit->table))
            continue;
        limit->mended.recounted += !limit->visits[shard].unsure;
        atomic_compare_exchange_strong(&unit->words[i], &word, is);
    }
}

/* Writes a count of this process again, after a loss from the memory. */
static void write_lost(struct shm_limit *limit, const struct shm_limit_count *own)
{
    struct table_place place;
    struct shm_limit_cells cells;
    enum table_step step = shm_limit_find(limit, own->key, &place);

    assert(own->n > 0);
    if (step == TABLE_NONE)
        shm_limit_add(limit, own->key, 0, own->n, &place);
    else if (step == TABLE_OK && shm_limit_read_cells(limit, &place, &cells))
        shm_limit_publish(limit, &place, &cells, own->n);
}

/* Compares this process's counts with the shard's cells; the shard is whole. */
static void compare_counts(struct shm_limit *limit, uint32_t shard)
{
    struct shm_limit_count *own, first = { .n = 0 };
    uint32_t used = shm_limit_touched(limit, shard);

    limit->look++;
    for (uint32_t i = 1; i <= used; i++) {
        if (!table_goes_on(&limit->table, i))
            return;
        compare_unit(limit, shard, shm_limit_unit_at(limit, shard, i));
    }
    first.key[0] = (uint64_t)shard << limit->table.shard_shift;
    first.key[1] = 0;
    own = RB_NFIND(shm_limit_counts, &limit->counts, &first);
    while (own != NULL && table_shard_of(&limit->table, own->key[0]) == shard) {
        if (own->n > 0 && own->seen != limit->look) {
            limit->mended.recounted += !limit->visits[shard].unsure;
            write_lost(limit, own);
        }
        own = RB_NEXT(shm_limit_counts, &limit->counts, own);
    }
}

void shm_limit_look(struct shm_limit *limit, uint32_t shard)
{
    struct shm_limit_visit *visit = &limit->visits[shard];
    uint32_t deaths = ZONE_LOAD(limit->header->deaths);
    struct found found;

    assert(limit->table.hold.lock == &limit->shards[shard].lock);
    if (!look_through(limit, shard, &found))
        return;
    if (found.damaged)
        shm_limit_rebuild_damaged(limit, shard);
    else if (found.idle + found.left > 0)
        shm_limit_rebuild(limit, shard, false);
    compare_counts(limit, shard);
    if (!table_holds(&limit->table))
        return;
    *visit = (struct shm_limit_visit) {
        .visited = true,
        .deaths = deaths,
        .rebuilds = ZONE_LOAD(limit->shards[shard].rebuilds),
    };
}

bool shm_limit_sweep_shard(struct shm_limit *limit, uint32_t shard)
{
    struct shm_limit_visit *visit = &limit->visits[shard];
    struct found found;

    assert(limit->table.hold.lock == &limit->shards[shard].lock);
    if (limit->now_ns < visit->sweep_ns || !look_through(limit, shard, &found))
        return false;
    visit->sweep_ns = limit->now_ns + SWEEP_NS;
    if (found.damaged || found.idle + found.left == 0)
        return false;
    shm_limit_rebuild(limit, shard, false);
    visit->sweep_ns = limit->now_ns + SWEEP_AGAIN_NS;
    return true;
}

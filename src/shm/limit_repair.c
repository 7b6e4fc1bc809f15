/* SPDX-License-Identifier: BSD-2-Clause */
/* Repairs of a shard: buckets, chains and free list are rebuilt from the units' kinds, and each
 * process writes its own counts again. Neither a death nor damage to chains loses a count. */
#include "base/compiler.h"
#include "shm/limit_private.h"

#include <assert.h>

/* The time between two sweeps of a full shard for unneeded keys. */
#define SWEEP_NS UINT64_C(100000000)
#define SWEEP_AGAIN_NS UINT64_C(10000000) /* the same, where there were some */

/* Whether a unit is reserved by another living process, perhaps writing there. */
static bool is_reserved_elsewhere(const struct shm_limit *limit, uint32_t kind)
{
    uint32_t incarnation = kind & ~SHM_LIMIT_RESERVED, slot = incarnation & ((1u << SLOT_BITS) - 1);
    uint32_t serial = ZONE_LOAD(limit->header->workers.living[slot]);

    return (kind & SHM_LIMIT_RESERVED) != 0 && kind != shm_limit_reserved(limit) && serial != 0 &&
           slot_incarnation((struct slot_id) { slot, serial }) == incarnation;
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

/* Clears the cells of the dead. */
static void clean_cells(const struct shm_limit *limit, struct shm_limit_unit *unit, uint32_t kind)
{
    for (int i = shm_limit_first_cell(kind); i < SHM_LIMIT_WORDS; i++) {
        uint64_t word = ZONE_LOAD(unit->words[i]);

        if (word != 0 && !shm_limit_cell_counts(limit, word))
            atomic_compare_exchange_strong(&unit->words[i], &word, 0);
    }
}

/* Puts a key's unit into the bucket of its hash; a second unit of a key becomes cells of the first.
 * Frees a unit beyond the longest chain, or of a different shard. */
static void collect_key(struct shm_limit *limit, uint32_t shard, uint32_t index, uint64_t state)
{
    struct shm_limit_unit *unit = shm_limit_unit_at(limit, shard, index);
    uint64_t first = ZONE_LOAD(unit->words[0]), second = ZONE_LOAD(unit->words[1]);
    _Atomic uint64_t *bucket =
        table_bucket(&limit->table, shard, table_bucket_of(&limit->table, first));
    uint64_t head = ZONE_LOAD(*bucket);
    uint32_t n = table_shard_of(&limit->table, first) == shard ? 0 : TABLE_CHAIN_MAX;

    for (uint32_t i = (uint32_t)head; n < TABLE_CHAIN_MAX && i != 0; n++) {
        const struct shm_limit_unit *other;

        if (!table_is_index(&limit->table, i))
            break;
        other = shm_limit_unit_at(limit, shard, i);
        if (ZONE_LOAD(other->words[0]) == first && ZONE_LOAD(other->words[1]) == second) {
            ZONE_STORE(unit->more, i);
            shm_limit_swap(&unit->state, state, SHM_LIMIT_CELLS);
            return;
        }
        i = ZONE_LOAD(other->next);
    }
    if (n == TABLE_CHAIN_MAX) {
        shm_limit_swap(&unit->state, state, SHM_LIMIT_FREE);
        return;
    }
    clean_cells(limit, unit, SHM_LIMIT_KEY);
    shm_limit_set_more(&unit->more, ZONE_LOAD(unit->more), 0);
    ZONE_STORE(unit->next, (uint32_t)head);
    shm_limit_swap(bucket, head, index);
}

/* Links a unit of cells to its key again; frees a unit without a key, or without counts. */
static void collect_cells(struct shm_limit *limit, uint32_t shard, uint32_t i, uint64_t state)
{
    struct shm_limit_unit *unit = shm_limit_unit_at(limit, shard, i), *key = NULL;
    uint32_t index = ZONE_LOAD(unit->more), more;

    if (table_is_index(&limit->table, index))
        key = shm_limit_unit_at(limit, shard, index);
    assert((uint32_t)state == SHM_LIMIT_CELLS);
    clean_cells(limit, unit, SHM_LIMIT_CELLS);
    if (key == NULL || shm_limit_unit_kind(key) != SHM_LIMIT_KEY ||
        !has_counts(limit, unit, SHM_LIMIT_CELLS)) {
        shm_limit_swap(&unit->state, state, SHM_LIMIT_FREE);
        return;
    }
    more = ZONE_LOAD(key->more);
    ZONE_STORE(unit->next, more & SHM_LIMIT_INDEX_MASK);
    shm_limit_set_more(&key->more, more, i);
}

/* Collects the units of a kind among the first n. */
static bool collect_units(struct shm_limit *limit, uint32_t shard, uint32_t n, uint32_t kind,
    void (*collect)(struct shm_limit *limit, uint32_t shard, uint32_t index, uint64_t state))
{
    assert(n <= limit->table.entry_n);
    for (uint32_t i = 1; i <= n; i++) {
        uint64_t state = ZONE_LOAD(shm_limit_unit_at(limit, shard, i)->state);

        if (!table_goes_on(&limit->table, i))
            return false;
        if ((uint32_t)state == kind)
            collect(limit, shard, i, state);
    }
    return true;
}

static bool clear_buckets(struct shm_limit *limit, uint32_t shard)
{
    for (uint32_t i = 0; i < limit->table.bucket_n; i++) {
        _Atomic uint64_t *bucket = table_bucket(&limit->table, shard, i);

        if (!table_goes_on(&limit->table, i))
            return false;
        shm_limit_swap(bucket, ZONE_LOAD(*bucket), 0);
    }
    return true;
}

/* Whether a key is idle; units of cells make a key needed. */
static bool is_key_idle(const struct shm_limit *limit, const struct shm_limit_unit *unit)
{
    return !has_counts(limit, unit, SHM_LIMIT_KEY) &&
           (ZONE_LOAD(unit->more) & SHM_LIMIT_INDEX_MASK) == 0 &&
           !shm_limit_account_matters(limit, unit);
}

/* Unlinks an idle key from its chain. */
static enum table_visit discard_idle(struct table_place *at, void *arg)
{
    struct shm_limit *limit = arg;
    struct shm_limit_unit *unit = at->entry;
    _Atomic uint64_t *bucket = table_bucket(&limit->table, at->shard, at->bucket);
    uint64_t state = ZONE_LOAD(unit->state);
    uint32_t next = ZONE_LOAD(unit->next);

    if (!is_key_idle(limit, unit) || !shm_limit_swap(&unit->state, state, SHM_LIMIT_FREE))
        return TABLE_KEPT;
    if (at->before != 0)
        ZONE_STORE(*table_next(table_entry(&limit->table, at->shard, at->before)), next);
    else
        shm_limit_swap(bucket, ZONE_LOAD(*bucket), next);
    return TABLE_REMOVED;
}

/* Rebuilds the free chain, with new states: a robbed holder's reservation fails. */
static bool collect_free(struct shm_limit *limit, uint32_t shard, uint32_t n)
{
    struct shm_limit_shard *s = &limit->shards[shard];
    uint64_t head = ZONE_LOAD(s->free);
    uint32_t first = 0;

    assert(n <= limit->table.entry_n);
    for (uint32_t i = n; i > 0; i--) {
        struct shm_limit_unit *unit = shm_limit_unit_at(limit, shard, i);
        uint64_t state = ZONE_LOAD(unit->state);
        uint32_t kind = (uint32_t)state;

        if (!table_goes_on(&limit->table, i))
            return false;
        if (kind == SHM_LIMIT_KEY || kind == SHM_LIMIT_CELLS ||
            is_reserved_elsewhere(limit, kind) ||
            !shm_limit_swap(&unit->state, state, SHM_LIMIT_FREE))
            continue;
        ZONE_STORE(unit->next, first);
        first = i;
    }
    if (!table_holds(&limit->table))
        return false;
    ZONE_STORE(s->used, n);
    return shm_limit_swap(&s->free, head, first);
}

void shm_limit_rebuild(struct shm_limit *limit, uint32_t shard, bool all)
{
    struct shm_limit_shard *s = &limit->shards[shard];
    uint32_t n = all ? limit->table.entry_n : shm_limit_touched(limit, shard);

    assert(limit->table.hold.lock == &s->lock);
    if (!clear_buckets(limit, shard) ||
        !collect_units(limit, shard, n, SHM_LIMIT_KEY, collect_key) ||
        !collect_units(limit, shard, n, SHM_LIMIT_CELLS, collect_cells) ||
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
    uint32_t used; /* units beyond it are in no chain */
    uint32_t n;    /* units accounted for: keys, cells, free and reserved units */
    uint32_t idle; /* unneeded keys, units of cells, and reserved units left by a failed call */
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
    found->n++;
    found->idle += is_key_idle(found->limit, unit);
    for (uint32_t n = 0; index != 0; n++) {
        unit = shm_limit_cells_at(found->limit, at, index, n);
        if (unit == NULL || index > found->used)
            return TABLE_DAMAGED;
        found->n++;
        found->idle += !has_counts(found->limit, unit, SHM_LIMIT_CELLS);
        index = ZONE_LOAD(unit->next);
    }
    return TABLE_KEPT;
}

/* Counts the chain of free units, unless damaged. */
static void count_free(const struct shm_limit *limit, uint32_t shard, struct found *found)
{
    uint32_t index = (uint32_t)ZONE_LOAD(limit->shards[shard].free);

    for (uint32_t n = 0; index != 0 && !found->damaged; n++) {
        const struct shm_limit_unit *unit;

        found->damaged = index > found->used || n == found->used;
        if (found->damaged)
            return;
        unit = shm_limit_unit_at(limit, shard, index);
        found->damaged = shm_limit_unit_kind(unit) != SHM_LIMIT_FREE;
        found->n++;
        index = ZONE_LOAD(unit->next);
    }
}

/* Counts the reserved units: the holder has none, unless the last call has failed. */
static void count_reserved(const struct shm_limit *limit, uint32_t shard, struct found *found)
{
    for (uint32_t i = shm_limit_touched(limit, shard); i > 0; i--) {
        uint32_t kind = shm_limit_unit_kind(shm_limit_unit_at(limit, shard, i));

        found->n += (kind & SHM_LIMIT_RESERVED) != 0;
        found->idle += (kind & SHM_LIMIT_RESERVED) != 0 && !is_reserved_elsewhere(limit, kind);
    }
}

/* Compares the shard with itself; false where the lock was taken. */
static bool look_through_units(struct shm_limit *limit, uint32_t shard, struct found *found)
{
    uint32_t used = ZONE_LOAD(limit->shards[shard].used);
    enum table_step step = used > limit->table.entry_n ? TABLE_FAILED : TABLE_OK;

    *found = (struct found) { .limit = limit, .used = used };
    if (used > 0 && step == TABLE_OK)
        step = table_walk(&limit->table, shard, count_key, found);
    if (step == TABLE_NONE)
        return false;
    found->damaged = step == TABLE_FAILED;
    count_free(limit, shard, found);
    count_reserved(limit, shard, found);
    found->damaged = found->damaged || found->n != used;
    return table_holds(&limit->table);
}

/* Compares this process's cells in a unit with the private counts. */
static void compare_unit(struct shm_limit *limit, uint32_t shard, struct shm_limit_unit *unit)
{
    uint32_t kind = shm_limit_unit_kind(unit), index = ZONE_LOAD(unit->more);
    const struct shm_limit_unit *key = unit;
    struct shm_limit_count *own, wanted;

    if (kind == SHM_LIMIT_CELLS && table_is_index(&limit->table, index))
        key = shm_limit_unit_at(limit, shard, index);
    else if (kind != SHM_LIMIT_KEY)
        return;
    wanted.key[0] = ZONE_LOAD(key->words[0]);
    wanted.key[1] = ZONE_LOAD(key->words[1]);
    for (int i = shm_limit_first_cell(kind); i < SHM_LIMIT_WORDS; i++) {
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
static void compare_shard(struct shm_limit *limit, uint32_t shard)
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
    if (!look_through_units(limit, shard, &found))
        return;
    if (found.damaged)
        shm_limit_rebuild_damaged(limit, shard);
    else if (found.idle > 0)
        shm_limit_rebuild(limit, shard, false);
    compare_shard(limit, shard);
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
    if (limit->now_ns < visit->sweep_ns || !look_through_units(limit, shard, &found))
        return false;
    visit->sweep_ns = limit->now_ns + SWEEP_NS;
    if (found.damaged || found.idle == 0)
        return false;
    shm_limit_rebuild(limit, shard, false);
    visit->sweep_ns = limit->now_ns + SWEEP_AGAIN_NS;
    return true;
}

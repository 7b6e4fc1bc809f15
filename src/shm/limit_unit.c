/* SPDX-License-Identifier: BSD-2-Clause */
/* Units of a shard. The caller has the lock, checked before each publishing store: a failed step
 * leaves the shard unchanged for readers, or fit for a rebuild. */
#include "base/compiler.h"
#include "shm/limit_private.h"

#include <assert.h>

/* The most units of cells per key: each unit has cells for six workers. */
#define MORE_MOST (SLOT_HALVES * SLOT_MAX / SHM_LIMIT_WORDS + 1)

uint32_t shm_limit_touched(const struct shm_limit *limit, uint32_t shard)
{
    uint32_t used = ZONE_LOAD(limit->shards[shard].used);

    return used <= limit->table.entry_n ? used : limit->table.entry_n;
}

static enum table_step compare_unit_key(const void *entry, bool is_same, const void *key)
{
    const struct shm_limit_unit *unit = entry;

    if (shm_limit_unit_kind(unit) != SHM_LIMIT_KEY)
        return TABLE_FAILED;
    return is_same && ZONE_LOAD(unit->words[1]) == ((const uint64_t *)key)[1] ? TABLE_OK
                                                                              : TABLE_NONE;
}

enum table_step shm_limit_find(
    struct shm_limit *limit, const uint64_t key[2], struct table_place *place)
{
    assert(limit->table.hold.lock != NULL);
    *place = table_place_of(&limit->table, key[0]);
    place->index = table_first(&limit->table, place->shard, place->bucket);
    return table_find(&limit->table, place, compare_unit_key, key);
}

/* Changes the kind of a unit from an expected kind. */
static bool change_kind(
    struct shm_limit *limit, struct shm_limit_unit *unit, uint32_t from, uint32_t to)
{
    uint64_t state = ZONE_LOAD(unit->state);

    return (uint32_t)state == from && table_holds(&limit->table) &&
           shm_limit_swap(&unit->state, state, to);
}

/* Reserves a unit of the free chain, or the next untouched unit: OK; NONE; FAILED. */
static enum table_step reserve_unit(struct shm_limit *limit, uint32_t shard, uint32_t *index)
{
    struct shm_limit_shard *s = &limit->shards[shard];
    uint64_t head = ZONE_LOAD(s->free);
    uint32_t first = (uint32_t)head, used = ZONE_LOAD(s->used), next;
    struct shm_limit_unit *unit;
    bool taken;

    assert(limit->table.hold.lock == &s->lock);
    if (used > limit->table.entry_n || first > used)
        return TABLE_FAILED;
    if (first == 0 && used == limit->table.entry_n)
        return TABLE_NONE;
    *index = first != 0 ? first : used + 1;
    unit = shm_limit_unit_at(limit, shard, *index);
    next = ZONE_LOAD(unit->next);
    if (first != 0 && (shm_limit_unit_kind(unit) != SHM_LIMIT_FREE || next > used))
        return TABLE_FAILED;
    taken = table_holds(&limit->table) &&
            (first != 0 ? shm_limit_swap(&s->free, head, next)
                        : atomic_compare_exchange_strong(&s->used, &used, *index));
    return taken && change_kind(limit, unit, SHM_LIMIT_FREE, shm_limit_reserved(limit))
               ? TABLE_OK
               : TABLE_FAILED;
}

/* Frees a reserved unit, in no chain. */
static bool give_unit(struct shm_limit *limit, uint32_t shard, uint32_t index)
{
    struct shm_limit_shard *s = &limit->shards[shard];
    struct shm_limit_unit *unit = shm_limit_unit_at(limit, shard, index);
    uint64_t head = ZONE_LOAD(s->free);

    assert(limit->table.hold.lock == &s->lock);
    if (!table_holds(&limit->table))
        return false;
    ZONE_STORE(unit->next, (uint32_t)head);
    return change_kind(limit, unit, shm_limit_reserved(limit), SHM_LIMIT_FREE) &&
           shm_limit_swap(&s->free, head, index);
}

enum table_step shm_limit_add(struct shm_limit *limit, const uint64_t key[2], uint64_t account,
    uint32_t n, struct table_place *place)
{
    uint32_t index;
    enum table_step step = reserve_unit(limit, place->shard, &index);
    _Atomic uint64_t *bucket = table_bucket(&limit->table, place->shard, place->bucket);
    uint64_t head = ZONE_LOAD(*bucket);
    struct shm_limit_unit *unit;

    assert(place->index == 0);
    if (step != TABLE_OK)
        return step;
    unit = shm_limit_unit_at(limit, place->shard, index);
    ZONE_STORE(unit->words[0], key[0]);
    ZONE_STORE(unit->words[1], key[1]);
    ZONE_STORE(unit->words[SHM_LIMIT_ACCOUNT], account);
    ZONE_STORE(unit->words[SHM_LIMIT_FIRST_CELL], shm_limit_cell(limit, n));
    for (int i = SHM_LIMIT_FIRST_CELL + 1; i < SHM_LIMIT_WORDS; i++)
        ZONE_STORE(unit->words[i], 0);
    ZONE_STORE(unit->more, ZONE_LOAD(unit->more) & ~SHM_LIMIT_INDEX_MASK);
    ZONE_STORE(unit->next, (uint32_t)head);
    if (!change_kind(limit, unit, shm_limit_reserved(limit), SHM_LIMIT_KEY) ||
        !table_holds(&limit->table) || !shm_limit_swap(bucket, head, index))
        return TABLE_FAILED;
    place->before = 0;
    place->index = index;
    place->entry = unit;
    return TABLE_OK;
}

/* Reads the cells in a unit; clears a duplicate cell with our id. */
static bool read_unit(struct shm_limit *limit, struct shm_limit_unit *unit, uint32_t kind,
    struct shm_limit_cells *cells)
{
    for (int i = shm_limit_first_cell(kind); i < SHM_LIMIT_WORDS; i++) {
        _Atomic uint64_t *cell = &unit->words[i];
        uint64_t word = ZONE_LOAD(*cell);

        if (shm_limit_cell_is_own(limit, word) && cells->own == NULL) {
            cells->own = cell;
            cells->own_word = word;
        } else if (shm_limit_cell_is_own(limit, word)) {
            limit->mended.recounted++;
            if (!table_holds(&limit->table) || !atomic_compare_exchange_strong(cell, &word, 0))
                return false;
        } else if (shm_limit_cell_counts(limit, word)) {
            cells->others += shm_limit_cell_count(word);
        } else if (cells->empty == NULL) {
            cells->empty = cell;
            cells->empty_word = word;
        }
    }
    return true;
}

struct shm_limit_unit *shm_limit_cells_at(
    const struct shm_limit *limit, const struct table_place *place, uint32_t index, uint32_t n)
{
    struct shm_limit_unit *unit;

    if (!table_is_index(&limit->table, index) || n >= MORE_MOST)
        return NULL;
    unit = shm_limit_unit_at(limit, place->shard, index);
    return shm_limit_unit_kind(unit) == SHM_LIMIT_CELLS && ZONE_LOAD(unit->more) == place->index
               ? unit
               : NULL;
}

bool shm_limit_read_cells(
    struct shm_limit *limit, const struct table_place *place, struct shm_limit_cells *cells)
{
    struct shm_limit_unit *unit = place->entry;
    uint32_t index = ZONE_LOAD(unit->more) & SHM_LIMIT_INDEX_MASK;

    assert(place->index != 0 && limit->table.hold.lock != NULL);
    *cells = (struct shm_limit_cells) { .own = NULL };
    if (!read_unit(limit, unit, SHM_LIMIT_KEY, cells))
        return false;
    for (uint32_t n = 0; index != 0; n++) {
        unit = shm_limit_cells_at(limit, place, index, n);
        if (unit == NULL || !read_unit(limit, unit, SHM_LIMIT_CELLS, cells))
            return false;
        index = ZONE_LOAD(unit->next);
    }
    return true;
}

/* Adds a unit of cells, the first for the process's count. */
static enum table_step add_cells(
    struct shm_limit *limit, const struct table_place *place, uint64_t word)
{
    struct shm_limit_unit *key = place->entry, *unit;
    uint32_t index, more;
    enum table_step step = reserve_unit(limit, place->shard, &index);

    assert(word != 0);
    if (step != TABLE_OK)
        return step;
    more = ZONE_LOAD(key->more);
    unit = shm_limit_unit_at(limit, place->shard, index);
    ZONE_STORE(unit->words[0], word);
    for (int i = 1; i < SHM_LIMIT_WORDS; i++)
        ZONE_STORE(unit->words[i], 0);
    ZONE_STORE(unit->more, place->index);
    ZONE_STORE(unit->next, more & SHM_LIMIT_INDEX_MASK);
    if (!change_kind(limit, unit, shm_limit_reserved(limit), SHM_LIMIT_CELLS) ||
        !table_holds(&limit->table) || !shm_limit_set_more(&key->more, more, index))
        return TABLE_FAILED;
    return TABLE_OK;
}

enum table_step shm_limit_publish(struct shm_limit *limit, const struct table_place *place,
    const struct shm_limit_cells *cells, uint32_t n)
{
    uint64_t word = shm_limit_cell(limit, n);
    bool done = table_holds(&limit->table);

    assert(place->index != 0);
    if (done && cells->own != NULL) {
        done = atomic_compare_exchange_strong(cells->own, &(uint64_t) { cells->own_word }, word);
    } else if (done && n > 0) {
        /* a new state, so that a process about to give up the idle key fails */
        done = change_kind(limit, place->entry, SHM_LIMIT_KEY, SHM_LIMIT_KEY);
        if (done && cells->empty == NULL)
            return add_cells(limit, place, word);
        done =
            done && table_holds(&limit->table) &&
            atomic_compare_exchange_strong(cells->empty, &(uint64_t) { cells->empty_word }, word);
    }
    return done ? TABLE_OK : TABLE_FAILED;
}

/* Unlinks a reserved key from its chain. */
static bool unlink_key(struct shm_limit *limit, const struct table_place *place)
{
    uint32_t next = ZONE_LOAD(*table_next(place->entry)), index = place->index;
    _Atomic uint64_t *bucket = table_bucket(&limit->table, place->shard, place->bucket);
    uint64_t head = ZONE_LOAD(*bucket);

    assert(index != place->before);
    if (!table_holds(&limit->table))
        return false;
    if (place->before != 0)
        return atomic_compare_exchange_strong(
            table_next(table_entry(&limit->table, place->shard, place->before)), &index, next);
    return (uint32_t)head == index && shm_limit_swap(bucket, head, next);
}

/* Gives the units of cells of a key up, which are the key's alone. */
static bool give_cells(struct shm_limit *limit, const struct table_place *place, uint32_t more)
{
    for (uint32_t n = 0, next; more != 0; n++, more = next) {
        struct shm_limit_unit *unit = shm_limit_cells_at(limit, place, more, n);

        if (unit == NULL)
            return false;
        next = ZONE_LOAD(unit->next);
        if (!change_kind(limit, unit, SHM_LIMIT_CELLS, shm_limit_reserved(limit)) ||
            !give_unit(limit, place->shard, more))
            return false;
    }
    return true;
}

enum table_step shm_limit_drop_idle(struct shm_limit *limit, const struct table_place *place)
{
    struct shm_limit_unit *unit = place->entry;
    uint64_t state = ZONE_LOAD(unit->state);
    uint32_t more = ZONE_LOAD(unit->more) & SHM_LIMIT_INDEX_MASK;
    struct shm_limit_cells cells;

    assert(place->index != 0 && place->index != place->before);
    if ((uint32_t)state != SHM_LIMIT_KEY || !shm_limit_read_cells(limit, place, &cells))
        return TABLE_FAILED;
    if (cells.own != NULL || cells.others > 0 || shm_limit_account_matters(limit, unit))
        return TABLE_OK;
    return table_holds(&limit->table) &&
                   shm_limit_swap(&unit->state, state, shm_limit_reserved(limit)) &&
                   unlink_key(limit, place) && give_cells(limit, place, more) &&
                   give_unit(limit, place->shard, place->index)
               ? TABLE_OK
               : TABLE_FAILED;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Units of a shard: finding a key, adding it, reading and writing its cells, giving it up. Each
 * function has the shard's lock, and looks at it before a store that publishes: a step that fails
 * leaves what others see as it was, or a shard that a rebuild makes whole. */
#include "base/compiler.h"
#include "shm/limit_private.h"

#include <assert.h>

/* Units of cells that a key can have: each has cells of six workers. */
#define MORE_MOST (SLOT_HALVES * SLOT_MAX / SHM_LIMIT_WORDS + 1)

static bool replace(_Atomic uint64_t *word, uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_strong(word, &from, to);
}

uint32_t shm_limit_touched(const struct shm_limit *limit, uint32_t shard)
{
    uint32_t used = ZONE_LOAD(limit->shards[shard].used);

    return used <= limit->unit_n ? used : limit->unit_n;
}

enum shm_limit_step shm_limit_find(
    struct shm_limit *limit, const uint64_t key[2], struct shm_limit_place *place)
{
    uint32_t shard = shm_limit_shard_of(limit, key[0]), bucket = shm_limit_bucket_of(limit, key[0]);
    uint32_t index;

    assert(limit->hold.lock == &limit->shards[shard].lock);
    *place = (struct shm_limit_place) {
        .shard = shard,
        .bucket = shm_limit_buckets(limit, shard) + bucket,
    };
    index = shm_limit_head_index(ZONE_LOAD(*place->bucket));
    for (uint32_t n = 0; index != 0; n++) {
        struct shm_limit_unit *unit;
        uint64_t first;

        if (!shm_limit_is_index(limit, index) || n == SHM_LIMIT_CHAIN_MAX)
            return SHM_LIMIT_STEP_FAILED;
        unit = shm_limit_unit_at(limit, shard, index);
        first = ZONE_LOAD(unit->words[0]);
        if (shm_limit_unit_kind(unit) != SHM_LIMIT_KEY ||
            shm_limit_shard_of(limit, first) != shard ||
            shm_limit_bucket_of(limit, first) != bucket)
            return SHM_LIMIT_STEP_FAILED;
        if (first == key[0] && ZONE_LOAD(unit->words[1]) == key[1]) {
            place->index = index;
            place->unit = unit;
            return SHM_LIMIT_STEP_OK;
        }
        place->before = unit;
        index = ZONE_LOAD(unit->next);
    }
    return SHM_LIMIT_STEP_NONE;
}

/* Takes a unit off the free ones: OK; NONE; FAILED. */
static enum shm_limit_step take_free(struct shm_limit *limit, uint32_t shard, uint32_t *index)
{
    struct shm_limit_shard *s = &limit->shards[shard];
    uint64_t head = ZONE_LOAD(s->free);
    uint32_t first = shm_limit_head_index(head), used = ZONE_LOAD(s->used), next;
    const struct shm_limit_unit *unit;
    bool taken;

    assert(limit->hold.lock == &s->lock);
    if (used > limit->unit_n || first > used)
        return SHM_LIMIT_STEP_FAILED;
    if (first == 0) {
        *index = next = used + 1;
        if (used == limit->unit_n)
            return SHM_LIMIT_STEP_NONE;
        taken = shm_limit_holds(limit) && atomic_compare_exchange_strong(&s->used, &used, next);
        return taken ? SHM_LIMIT_STEP_OK : SHM_LIMIT_STEP_FAILED;
    }
    unit = shm_limit_unit_at(limit, shard, first);
    next = ZONE_LOAD(unit->next);
    if (shm_limit_unit_kind(unit) != SHM_LIMIT_FREE || next > used || !shm_limit_holds(limit) ||
        !shm_limit_set_head(&s->free, head, next))
        return SHM_LIMIT_STEP_FAILED;
    *index = first;
    return SHM_LIMIT_STEP_OK;
}

/* Changes the kind of a unit from one that it must have. */
static bool change_kind(
    struct shm_limit *limit, struct shm_limit_unit *unit, uint32_t from, uint32_t to)
{
    uint64_t state = ZONE_LOAD(unit->state);

    return shm_limit_kind_of(state) == from && shm_limit_holds(limit) &&
           shm_limit_set_kind(unit, state, to);
}

/* Reserves a free unit, after a sweep where the shard is full. */
static enum shm_limit_step reserve_unit(struct shm_limit *limit, uint32_t shard, uint32_t *index)
{
    enum shm_limit_step step = take_free(limit, shard, index);

    if (unlikely(step == SHM_LIMIT_STEP_NONE) && shm_limit_sweep_shard(limit, shard))
        step = take_free(limit, shard, index);
    if (step != SHM_LIMIT_STEP_OK)
        return step;
    return change_kind(limit, shm_limit_unit_at(limit, shard, *index), SHM_LIMIT_FREE,
               shm_limit_reserved(limit))
               ? SHM_LIMIT_STEP_OK
               : SHM_LIMIT_STEP_FAILED;
}

/* Puts a unit that is reserved, and in no chain, to the free ones. */
static bool give_unit(struct shm_limit *limit, uint32_t shard, uint32_t index)
{
    struct shm_limit_shard *s = &limit->shards[shard];
    struct shm_limit_unit *unit = shm_limit_unit_at(limit, shard, index);
    uint64_t head = ZONE_LOAD(s->free);

    assert(limit->hold.lock == &s->lock);
    if (!shm_limit_holds(limit))
        return false;
    ZONE_STORE(unit->next, shm_limit_head_index(head));
    return change_kind(limit, unit, shm_limit_reserved(limit), SHM_LIMIT_FREE) &&
           shm_limit_set_head(&s->free, head, index);
}

enum shm_limit_step shm_limit_add(struct shm_limit *limit, const uint64_t key[2], uint64_t account,
    uint32_t n, struct shm_limit_place *place)
{
    uint32_t index;
    enum shm_limit_step step = reserve_unit(limit, place->shard, &index);
    uint64_t head = ZONE_LOAD(*place->bucket);
    struct shm_limit_unit *unit;

    assert(place->index == 0);
    if (step != SHM_LIMIT_STEP_OK)
        return step;
    unit = shm_limit_unit_at(limit, place->shard, index);
    ZONE_STORE(unit->words[0], key[0]);
    ZONE_STORE(unit->words[1], key[1]);
    ZONE_STORE(unit->words[SHM_LIMIT_ACCOUNT], account);
    ZONE_STORE(unit->words[SHM_LIMIT_FIRST_CELL], shm_limit_cell(limit, n));
    for (int i = SHM_LIMIT_FIRST_CELL + 1; i < SHM_LIMIT_WORDS; i++)
        ZONE_STORE(unit->words[i], 0);
    ZONE_STORE(unit->more, ZONE_LOAD(unit->more) & ~SHM_LIMIT_INDEX_MASK);
    ZONE_STORE(unit->next, shm_limit_head_index(head));
    if (!change_kind(limit, unit, shm_limit_reserved(limit), SHM_LIMIT_KEY) ||
        !shm_limit_holds(limit) || !shm_limit_set_head(place->bucket, head, index))
        return SHM_LIMIT_STEP_FAILED;
    place->before = NULL;
    place->index = index;
    place->unit = unit;
    return SHM_LIMIT_STEP_OK;
}

/* Reads the cells of one unit; a second one of this process is cleared. */
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
            if (!shm_limit_holds(limit) || !replace(cell, word, 0))
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

bool shm_limit_read_cells(
    struct shm_limit *limit, const struct shm_limit_place *place, struct shm_limit_cells *cells)
{
    uint32_t index = ZONE_LOAD(place->unit->more) & SHM_LIMIT_INDEX_MASK;

    assert(place->index != 0 && limit->hold.lock != NULL);
    *cells = (struct shm_limit_cells) { .own = NULL };
    if (!read_unit(limit, place->unit, SHM_LIMIT_KEY, cells))
        return false;
    for (uint32_t n = 0; index != 0; n++) {
        struct shm_limit_unit *unit;

        if (!shm_limit_is_index(limit, index) || n == MORE_MOST)
            return false;
        unit = shm_limit_unit_at(limit, place->shard, index);
        if (shm_limit_unit_kind(unit) != SHM_LIMIT_CELLS || ZONE_LOAD(unit->more) != place->index ||
            !read_unit(limit, unit, SHM_LIMIT_CELLS, cells))
            return false;
        index = ZONE_LOAD(unit->next);
    }
    return true;
}

/* Adds a unit of cells with this process's. */
static enum shm_limit_step add_cells(
    struct shm_limit *limit, const struct shm_limit_place *place, uint64_t word)
{
    uint32_t index, more;
    enum shm_limit_step step = reserve_unit(limit, place->shard, &index);
    struct shm_limit_unit *unit;

    assert(word != 0 && place->index != 0);
    if (step != SHM_LIMIT_STEP_OK)
        return step;
    more = ZONE_LOAD(place->unit->more);
    unit = shm_limit_unit_at(limit, place->shard, index);
    ZONE_STORE(unit->words[0], word);
    for (int i = 1; i < SHM_LIMIT_WORDS; i++)
        ZONE_STORE(unit->words[i], 0);
    ZONE_STORE(unit->more, place->index);
    ZONE_STORE(unit->next, more & SHM_LIMIT_INDEX_MASK);
    if (!change_kind(limit, unit, shm_limit_reserved(limit), SHM_LIMIT_CELLS) ||
        !shm_limit_holds(limit) || !shm_limit_set_more(&place->unit->more, more, index))
        return SHM_LIMIT_STEP_FAILED;
    return SHM_LIMIT_STEP_OK;
}

enum shm_limit_step shm_limit_publish(struct shm_limit *limit, const struct shm_limit_place *place,
    const struct shm_limit_cells *cells, uint32_t n)
{
    uint64_t word = shm_limit_cell(limit, n);
    bool done = shm_limit_holds(limit);

    assert(place->index != 0);
    if (done && cells->own != NULL) {
        done = replace(cells->own, cells->own_word, word);
    } else if (done && n > 0) {
        /* another state, for who has seen that the key is idle, and is about to give it up */
        done = change_kind(limit, place->unit, SHM_LIMIT_KEY, SHM_LIMIT_KEY);
        if (done && cells->empty == NULL)
            return add_cells(limit, place, word);
        done = done && shm_limit_holds(limit) && replace(cells->empty, cells->empty_word, word);
    }
    return done ? SHM_LIMIT_STEP_OK : SHM_LIMIT_STEP_FAILED;
}

/* Takes a key that is reserved out of its chain. */
static bool unlink_key(struct shm_limit *limit, const struct shm_limit_place *place)
{
    uint32_t next = ZONE_LOAD(place->unit->next), index = place->index;
    uint64_t head = ZONE_LOAD(*place->bucket);

    assert(index != 0 && place->unit != place->before);
    if (!shm_limit_holds(limit))
        return false;
    if (place->before != NULL)
        return atomic_compare_exchange_strong(&place->before->next, &index, next);
    return shm_limit_head_index(head) == index && shm_limit_set_head(place->bucket, head, next);
}

/* Gives the units of cells of a key up, which are the key's alone. */
static bool give_cells(struct shm_limit *limit, const struct shm_limit_place *place, uint32_t more)
{
    for (uint32_t n = 0; more != 0; n++) {
        struct shm_limit_unit *unit;
        uint32_t next;

        if (!shm_limit_is_index(limit, more) || n == MORE_MOST)
            return false;
        unit = shm_limit_unit_at(limit, place->shard, more);
        next = ZONE_LOAD(unit->next);
        if (ZONE_LOAD(unit->more) != place->index ||
            !change_kind(limit, unit, SHM_LIMIT_CELLS, shm_limit_reserved(limit)) ||
            !give_unit(limit, place->shard, more))
            return false;
        more = next;
    }
    return true;
}

enum shm_limit_step shm_limit_drop_idle(
    struct shm_limit *limit, const struct shm_limit_place *place)
{
    uint64_t state = ZONE_LOAD(place->unit->state);
    uint32_t more = ZONE_LOAD(place->unit->more) & SHM_LIMIT_INDEX_MASK;
    struct shm_limit_cells cells;

    assert(place->index != 0);
    if (shm_limit_kind_of(state) != SHM_LIMIT_KEY || !shm_limit_read_cells(limit, place, &cells))
        return SHM_LIMIT_STEP_FAILED;
    if (cells.own != NULL || cells.others > 0 ||
        shm_limit_account_matters(limit, ZONE_LOAD(place->unit->words[SHM_LIMIT_ACCOUNT])))
        return SHM_LIMIT_STEP_OK;
    return shm_limit_holds(limit) &&
                   shm_limit_set_kind(place->unit, state, shm_limit_reserved(limit)) &&
                   unlink_key(limit, place) && give_cells(limit, place, more) &&
                   give_unit(limit, place->shard, place->index)
               ? SHM_LIMIT_STEP_OK
               : SHM_LIMIT_STEP_FAILED;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts sessions of keys, and gives them back. A call tries again when it has found damage, which
 * is mended then, or when its lock was taken meanwhile: only what was done under a lock that could
 * be given back is believed. A call that cannot succeed refuses the session. */
#include "base/compiler.h"
#include "shm/limit_private.h"
#include "shm/siphash.h"

#include <assert.h>
#include <bsd/stdlib.h>
#include <stdlib.h>

static int compare_counts(const struct shm_limit_count *a, const struct shm_limit_count *b)
{
    if (a->key[0] != b->key[0])
        return a->key[0] < b->key[0] ? -1 : 1;
    return a->key[1] < b->key[1] ? -1 : a->key[1] > b->key[1];
}

RB_GENERATE(shm_limit_counts, shm_limit_count, node, compare_counts)

static void hash_key(
    const struct shm_limit *limit, const void *key, size_t n, struct shm_limit_count *count)
{
    const uint64_t *seed = limit->header->seed;

    assert(key != NULL || n == 0);
    *count = (struct shm_limit_count) {
        .key = { siphash(seed, key, n), siphash(seed + 2, key, n) },
    };
}

/* Locks a shard, made whole. */
static void lock_shard(struct shm_limit *limit, uint32_t shard)
{
    struct shm_limit_shard *s = &limit->shards[shard];
    const struct shm_limit_visit *visit = &limit->visits[shard];
    enum zone_lock_state state = zone_lock(&limit->locker, &s->lock, &limit->hold);

    assert(shard < limit->shard_n && state != ZONE_LOCK_BUSY);
    limit->mended.taken = limit->locker.taken;
    if (unlikely(state != ZONE_LOCK_FREE))
        shm_limit_rebuild(limit, shard, false);
    if (unlikely(!visit->visited || visit->unsure ||
                 visit->deaths != ZONE_LOAD(limit->header->deaths) ||
                 visit->rebuilds != ZONE_LOAD(s->rebuilds)))
        shm_limit_look(limit, shard);
}

/* Whether a step has come to its end, under a lock that nobody has taken: what it says is so. */
static bool unlock_shard(struct shm_limit *limit, uint32_t shard, enum shm_limit_step step)
{
    assert(limit->hold.lock == &limit->shards[shard].lock);
    if (unlikely(step == SHM_LIMIT_STEP_FAILED))
        shm_limit_rebuild_damaged(limit, shard);
    if (likely(zone_lock_release(&limit->hold)))
        return step != SHM_LIMIT_STEP_FAILED;
    limit->visits[shard].unsure = true;
    return false;
}

/* Notes that what stands in the memory is not what this process has written there. */
static void compare_own(
    struct shm_limit *limit, const struct shm_limit_cells *cells, const struct shm_limit_count *own)
{
    uint32_t there = cells->own != NULL ? shm_limit_cell_count(cells->own_word) : 0;

    limit->mended.recounted += there != own->n;
}

/* Writes the count that this process is to have. */
static enum shm_limit_step write_own(struct shm_limit *limit, const struct shm_limit_place *place,
    const struct shm_limit_count *own, uint32_t n)
{
    struct shm_limit_cells cells;
    enum shm_limit_step step;

    if (!shm_limit_read_cells(limit, place, &cells))
        return SHM_LIMIT_STEP_FAILED;
    compare_own(limit, &cells, own);
    step = shm_limit_publish(limit, place, &cells, n);
    if (step != SHM_LIMIT_STEP_OK || n > 0)
        return step;
    return shm_limit_drop_idle(limit, place);
}

/* Counts one more session where fewer than `most` are there. The count is published before the sum
 * that decides is taken: where a lock was taken from a process, each of the two sees the other. */
static enum shm_limit_step count_one(
    struct shm_limit *limit, const struct shm_limit_count *own, uint32_t most, bool *reached)
{
    struct shm_limit_place place;
    struct shm_limit_cells cells = { .own = NULL };
    enum shm_limit_step step = shm_limit_find(limit, own->key, &place);

    *reached = false;
    if (step == SHM_LIMIT_STEP_OK && !shm_limit_read_cells(limit, &place, &cells))
        return SHM_LIMIT_STEP_FAILED;
    if (step != SHM_LIMIT_STEP_FAILED && cells.others + own->n >= most) {
        *reached = true;
        return SHM_LIMIT_STEP_OK;
    }
    if (step == SHM_LIMIT_STEP_NONE) {
        compare_own(limit, &cells, own);
        step = shm_limit_add(limit, own->key, 0, own->n + 1, &place);
    } else if (step == SHM_LIMIT_STEP_OK) {
        step = write_own(limit, &place, own, own->n + 1);
    }
    if (step != SHM_LIMIT_STEP_OK)
        return step;
    atomic_thread_fence(memory_order_seq_cst);
    if (!shm_limit_read_cells(limit, &place, &cells))
        return SHM_LIMIT_STEP_FAILED;
    *reached = cells.others + own->n + 1 > most;
    return *reached ? shm_limit_publish(limit, &place, &cells, own->n) : SHM_LIMIT_STEP_OK;
}

/* Returns this process's count of the key, made where there is none; NULL without memory. */
static struct shm_limit_count *own_count(struct shm_limit *limit, const void *key, size_t n)
{
    struct shm_limit_count wanted, *own;

    hash_key(limit, key, n, &wanted);
    own = RB_FIND(shm_limit_counts, &limit->counts, &wanted);
    if (own != NULL)
        return own;
    own = malloc(sizeof(*own));
    if (own == NULL)
        return NULL;
    *own = wanted;
    RB_INSERT(shm_limit_counts, &limit->counts, own);
    return own;
}

static void release_count(struct shm_limit *limit, struct shm_limit_count *own)
{
    if (own->n > 0)
        return;
    RB_REMOVE(shm_limit_counts, &limit->counts, own);
    free(own);
}

enum shm_limit_status shm_limit_take(struct shm_limit *limit, const void *key, size_t n,
    uint64_t now_ns, uint32_t most, struct shm_limit_count **count)
{
    struct shm_limit_count *own = own_count(limit, key, n);
    enum shm_limit_status status = SHM_LIMIT_FULL;

    assert(most > 0 && most <= SHM_LIMIT_MOST && limit->hold.lock == NULL);
    if (own == NULL)
        return SHM_LIMIT_FULL;
    limit->now_ns = now_ns;
    for (int tries = 0; tries < SHM_LIMIT_TRIES; tries++) {
        uint32_t shard = shm_limit_shard_of(limit, own->key[0]);
        enum shm_limit_step step;
        bool reached;

        lock_shard(limit, shard);
        step = count_one(limit, own, most, &reached);
        if (!unlock_shard(limit, shard, step))
            continue;
        if (step == SHM_LIMIT_STEP_OK)
            status = reached ? SHM_LIMIT_REACHED : SHM_LIMIT_OK;
        break;
    }
    if (status == SHM_LIMIT_OK) {
        own->n++;
        *count = own;
    } else {
        release_count(limit, own);
    }
    return status;
}

static enum shm_limit_step uncount_one(struct shm_limit *limit, const struct shm_limit_count *own)
{
    struct shm_limit_place place;
    enum shm_limit_step step = shm_limit_find(limit, own->key, &place);

    if (step == SHM_LIMIT_STEP_NONE) /* the shard has lost it, which a rebuild lets others know */
        return SHM_LIMIT_STEP_FAILED;
    return step == SHM_LIMIT_STEP_OK ? write_own(limit, &place, own, own->n - 1) : step;
}

void shm_limit_give(struct shm_limit *limit, struct shm_limit_count *count, uint64_t now_ns)
{
    uint32_t shard = shm_limit_shard_of(limit, count->key[0]);
    bool given = false;

    assert(count->n > 0 && limit->hold.lock == NULL);
    limit->now_ns = now_ns;
    for (int tries = 0; tries < SHM_LIMIT_TRIES && !given; tries++) {
        lock_shard(limit, shard);
        given = unlock_shard(limit, shard, uncount_one(limit, count));
    }
    if (!given)
        limit->visits[shard].unsure = true; /* the next visit writes what is so */
    count->n--;
    release_count(limit, count);
}

/* Whether the account is of the zone's rates: another is of rates before a reload. */
static bool is_account(
    const struct shm_limit *limit, uint64_t until_ns, const struct shm_limit_rate *rate)
{
    uint64_t most_ns = rate->burst_ns + rate->interval_ns;

    if (most_ns < limit->rate_most_ns)
        most_ns = limit->rate_most_ns;
    return until_ns > limit->now_ns && until_ns - limit->now_ns <= most_ns + SHM_LIMIT_SKEW_NS;
}

/* Notes a session in the account: the time until which the sessions that came suffice. */
static enum shm_limit_step note_session(struct shm_limit *limit,
    const struct shm_limit_place *place, const struct shm_limit_rate *rate, bool *reached)
{
    _Atomic uint64_t *account = &place->unit->words[SHM_LIMIT_ACCOUNT];
    uint64_t seen = ZONE_LOAD(*account), until = seen;

    if (!is_account(limit, until, rate))
        until = limit->now_ns;
    *reached = until - limit->now_ns > rate->burst_ns;
    if (*reached)
        return SHM_LIMIT_STEP_OK;
    return shm_limit_holds(limit) &&
                   atomic_compare_exchange_strong(account, &seen, until + rate->interval_ns)
               ? SHM_LIMIT_STEP_OK
               : SHM_LIMIT_STEP_FAILED;
}

enum shm_limit_status shm_limit_pass(struct shm_limit *limit, const void *key, size_t n,
    uint64_t now_ns, const struct shm_limit_rate *rate)
{
    struct shm_limit_count wanted;

    assert(rate->interval_ns > 0 && limit->hold.lock == NULL);
    hash_key(limit, key, n, &wanted);
    limit->now_ns = now_ns;
    for (int tries = 0; tries < SHM_LIMIT_TRIES; tries++) {
        uint32_t shard = shm_limit_shard_of(limit, wanted.key[0]);
        struct shm_limit_place place;
        enum shm_limit_step step;
        bool reached = false;

        lock_shard(limit, shard);
        step = shm_limit_find(limit, wanted.key, &place);
        if (step == SHM_LIMIT_STEP_NONE)
            step = shm_limit_add(limit, wanted.key, now_ns + rate->interval_ns, 0, &place);
        else if (step == SHM_LIMIT_STEP_OK)
            step = note_session(limit, &place, rate, &reached);
        if (!unlock_shard(limit, shard, step))
            continue;
        if (step == SHM_LIMIT_STEP_NONE)
            break;
        return reached ? SHM_LIMIT_REACHED : SHM_LIMIT_OK;
    }
    return SHM_LIMIT_FULL;
}

uint64_t shm_limit_sum(struct shm_limit *limit, const void *key, size_t n)
{
    struct shm_limit_count wanted;
    struct shm_limit_cells cells = { .own = NULL };
    struct shm_limit_place place;
    uint32_t shard;

    hash_key(limit, key, n, &wanted);
    shard = shm_limit_shard_of(limit, wanted.key[0]);
    lock_shard(limit, shard);
    if (shm_limit_find(limit, wanted.key, &place) == SHM_LIMIT_STEP_OK)
        shm_limit_read_cells(limit, &place, &cells);
    zone_lock_release(&limit->hold);
    return cells.others + (cells.own != NULL ? shm_limit_cell_count(cells.own_word) : 0);
}

void shm_limit_sweep(struct shm_limit *limit, uint64_t now_ns)
{
    limit->now_ns = now_ns;
    for (uint32_t shard = 0; shard < limit->shard_n; shard++) {
        limit->visits[shard].visited = false;
        lock_shard(limit, shard);
        unlock_shard(limit, shard, SHM_LIMIT_STEP_OK);
    }
}

uint64_t shm_limit_used(const struct shm_limit *limit)
{
    uint64_t n = 0;

    for (uint32_t shard = 0; shard < limit->shard_n; shard++)
        for (uint32_t i = shm_limit_touched(limit, shard); i > 0; i--)
            n += shm_limit_unit_kind(shm_limit_unit_at(limit, shard, i)) != SHM_LIMIT_FREE;
    return n;
}

void shm_limit_close(struct shm_limit *limit)
{
    struct shm_limit_count *count, *next;

    for (count = RB_MIN(shm_limit_counts, &limit->counts); count != NULL; count = next) {
        next = RB_NEXT(shm_limit_counts, &limit->counts, count);
        RB_REMOVE(shm_limit_counts, &limit->counts, count);
        free(count);
    }
}

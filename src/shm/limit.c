/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts sessions of keys, and gives them back. A call tries again after damage, repaired first,
 * and after a loss of the lock; a call without success refuses the session. */
#include "base/compiler.h"
#include "shm/limit_private.h"
#include "shm/siphash.h"

#include <assert.h>
#include <bsd/stdlib.h>
#include <stdlib.h>
#include <string.h>

/* Units per shard. A full shard refuses keys while other shards have room: shards are large. */
#define UNITS_A_SHARD 512

static_assert(sizeof(struct shm_limit_unit) == SHM_LIMIT_UNIT, "the layout is versioned");
static_assert(offsetof(struct shm_limit_unit, words) == TABLE_HASH_AT, "the first has the hash");
static_assert(sizeof(struct shm_limit_shard) == CACHE_LINE, "every shard has a line");
static_assert(SHM_LIMIT_MOST < SHM_LIMIT_COUNT_MASK, "a cell's count is more than any limit");

static int compare_counts(const struct shm_limit_count *a, const struct shm_limit_count *b)
{
    if (a->key[0] != b->key[0])
        return a->key[0] < b->key[0] ? -1 : 1;
    return a->key[1] < b->key[1] ? -1 : a->key[1] > b->key[1];
}

RB_GENERATE(shm_limit_counts, shm_limit_count, node, compare_counts)

static struct shm_limit_count count_of_key(const struct shm_limit *limit, const void *key, size_t n)
{
    const uint64_t *seed = limit->header->seed;

    assert(key != NULL || n == 0);
    return (struct shm_limit_count) {
        .key = { siphash(seed, key, n), siphash(seed + 2, key, n) },
    };
}

/* Locks a shard, made whole. */
static void lock_shard(struct shm_limit *limit, uint32_t shard)
{
    struct shm_limit_shard *s = &limit->shards[shard];
    const struct shm_limit_visit *visit = &limit->visits[shard];
    enum zone_lock_state state = zone_lock(&limit->table.locker, &s->lock, &limit->table.hold);

    assert(state != ZONE_LOCK_BUSY);
    limit->mended.taken = limit->table.locker.taken;
    if (unlikely(state != ZONE_LOCK_FREE))
        shm_limit_rebuild(limit, shard, false);
    if (unlikely(!visit->visited || visit->unsure ||
                 visit->deaths != ZONE_LOAD(limit->header->deaths) ||
                 visit->rebuilds != ZONE_LOAD(s->rebuilds)))
        shm_limit_look(limit, shard);
}

/* A call, with its outcome. */
struct call {
    const struct shm_limit_count *own;
    uint32_t most;
    const struct shm_limit_rate *rate;
    bool reached;
};

/* Takes a step until the lock was held to its end: OK; NONE without room; FAILED at last. */
static ALWAYS_INLINE enum table_step take_step(struct shm_limit *limit, uint64_t now_ns,
    enum table_step (*step)(struct shm_limit *limit, struct call *call), struct call *call)
{
    uint32_t shard = table_shard_of(&limit->table, call->own->key[0]);

    assert(limit->table.hold.lock == NULL);
    limit->now_ns = now_ns;
    for (int tries = 0; tries < TABLE_TRIES; tries++) {
        enum table_step taken;

        lock_shard(limit, shard);
        assert(limit->table.hold.lock == &limit->shards[shard].lock);
        call->reached = false;
        do /* a second sweep is not due */
            taken = step(limit, call);
        while (unlikely(taken == TABLE_NONE) && shm_limit_sweep_shard(limit, shard));
        if (unlikely(taken == TABLE_FAILED))
            shm_limit_rebuild_damaged(limit, shard);
        if (unlikely(!zone_lock_release(&limit->table.hold)))
            limit->visits[shard].unsure = true;
        else if (likely(taken != TABLE_FAILED))
            return taken;
    }
    return TABLE_FAILED;
}

/* Counts a mismatch between the memory and the count written by this process. */
static void compare_own(
    struct shm_limit *limit, const struct shm_limit_cells *cells, const struct shm_limit_count *own)
{
    uint32_t there = cells->own != NULL ? shm_limit_cell_count(cells->own_word) : 0;

    limit->mended.recounted += there != own->n;
}

/* Counts one more session where fewer than `most` are there. The count is published before the
 * deciding sum is taken: after a theft of the lock both processes see the second count. */
static enum table_step count_one(struct shm_limit *limit, struct call *call)
{
    const struct shm_limit_count *own = call->own;
    struct table_place place;
    struct shm_limit_cells cells = { .own = NULL };
    enum table_step step = shm_limit_find(limit, own->key, &place);

    if (step == TABLE_FAILED || (step == TABLE_OK && !shm_limit_read_cells(limit, &place, &cells)))
        return TABLE_FAILED;
    call->reached = cells.others + own->n >= call->most;
    if (call->reached)
        return TABLE_OK;
    compare_own(limit, &cells, own);
    step = step == TABLE_NONE ? shm_limit_add(limit, own->key, 0, own->n + 1, &place)
                              : shm_limit_publish(limit, &place, &cells, own->n + 1);
    if (step != TABLE_OK)
        return step;
    atomic_thread_fence(memory_order_seq_cst);
    if (!shm_limit_read_cells(limit, &place, &cells))
        return TABLE_FAILED;
    call->reached = cells.others + own->n + 1 > call->most;
    return call->reached ? shm_limit_publish(limit, &place, &cells, own->n) : TABLE_OK;
}

/* Returns this process's count of the key, made where there is none; NULL without memory. */
static struct shm_limit_count *own_count(struct shm_limit *limit, const void *key, size_t n)
{
    struct shm_limit_count wanted = count_of_key(limit, key, n), *own;

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
    struct call call = { .own = own, .most = most };
    enum table_step step;

    assert(most > 0 && most <= SHM_LIMIT_MOST);
    if (own == NULL)
        return SHM_LIMIT_FULL;
    step = take_step(limit, now_ns, count_one, &call);
    if (step == TABLE_OK && !call.reached) {
        own->n++;
        *count = own;
        return SHM_LIMIT_OK;
    }
    release_count(limit, own);
    return step == TABLE_OK ? SHM_LIMIT_REACHED : SHM_LIMIT_FULL;
}

static enum table_step uncount_one(struct shm_limit *limit, struct call *call)
{
    const struct shm_limit_count *own = call->own;
    struct table_place place;
    struct shm_limit_cells cells;
    enum table_step step = shm_limit_find(limit, own->key, &place);

    /* after the loss of a key a rebuild alerts the processes */
    if (step != TABLE_OK || !shm_limit_read_cells(limit, &place, &cells))
        return TABLE_FAILED;
    compare_own(limit, &cells, own);
    step = shm_limit_publish(limit, &place, &cells, own->n - 1);
    return step == TABLE_OK && own->n == 1 ? shm_limit_drop_idle(limit, &place) : step;
}

void shm_limit_give(struct shm_limit *limit, struct shm_limit_count *count, uint64_t now_ns)
{
    struct call call = { .own = count };

    assert(count->n > 0);
    if (take_step(limit, now_ns, uncount_one, &call) == TABLE_FAILED) /* the next visit writes */
        limit->visits[table_shard_of(&limit->table, count->key[0])].unsure = true;
    count->n--;
    release_count(limit, count);
}

/* Whether the account is of the zone's rates, not of rates before a reload. */
static bool is_account(
    const struct shm_limit *limit, uint64_t until_ns, const struct shm_limit_rate *rate)
{
    uint64_t most_ns = rate->burst_ns + rate->interval_ns;

    if (most_ns < limit->rate_most_ns)
        most_ns = limit->rate_most_ns;
    return until_ns > limit->now_ns && until_ns - limit->now_ns <= most_ns + SHM_LIMIT_SKEW_NS;
}

/* Notes a session in the key's account, the time until which the counted sessions suffice. */
static enum table_step note_session(struct shm_limit *limit, struct call *call)
{
    const struct shm_limit_rate *rate = call->rate;
    struct table_place place;
    enum table_step step = shm_limit_find(limit, call->own->key, &place);
    _Atomic uint64_t *account;
    uint64_t seen, until;

    if (step == TABLE_NONE)
        return shm_limit_add(limit, call->own->key, limit->now_ns + rate->interval_ns, 0, &place);
    if (step == TABLE_FAILED)
        return TABLE_FAILED;
    account = &((struct shm_limit_unit *)place.entry)->words[SHM_LIMIT_ACCOUNT];
    seen = ZONE_LOAD(*account);
    until = is_account(limit, seen, rate) ? seen : limit->now_ns;
    call->reached = until - limit->now_ns > rate->burst_ns;
    return call->reached || (table_holds(&limit->table) && atomic_compare_exchange_strong(account,
                                                               &seen, until + rate->interval_ns))
               ? TABLE_OK
               : TABLE_FAILED;
}

enum shm_limit_status shm_limit_pass(struct shm_limit *limit, const void *key, size_t n,
    uint64_t now_ns, const struct shm_limit_rate *rate)
{
    const struct shm_limit_count own = count_of_key(limit, key, n);
    struct call call = { .own = &own, .rate = rate };

    assert(rate->interval_ns > 0);
    if (take_step(limit, now_ns, note_session, &call) != TABLE_OK)
        return SHM_LIMIT_FULL;
    return call.reached ? SHM_LIMIT_REACHED : SHM_LIMIT_OK;
}

void shm_limit_close(struct shm_limit *limit)
{
    struct shm_limit_count *count;

    while ((count = RB_MIN(shm_limit_counts, &limit->counts)) != NULL) {
        RB_REMOVE(shm_limit_counts, &limit->counts, count);
        free(count);
    }
}

struct layout {
    uint32_t shard_n, shard_bits, bucket_n, unit_n;
    uint64_t shards, buckets, units, size; /* offsets */
};

static bool is_possible_limit(const struct shm_limit_shape *shape)
{
    return shape->size >= SHM_LIMIT_UNIT &&
           shape->size / SHM_LIMIT_UNIT / TABLE_SHARDS_MAX < SHM_LIMIT_INDEX_MASK;
}

static struct layout limit_layout(const struct shm_limit_shape *shape)
{
    uint64_t units = shape->size / SHM_LIMIT_UNIT;
    struct layout l = { .shard_n = table_shards_for(units, UNITS_A_SHARD), .bucket_n = 1 };

    assert(is_possible_limit(shape));
    l.shard_bits = (uint32_t)__builtin_ctz(l.shard_n);
    l.unit_n = (uint32_t)(units / l.shard_n);
    while ((uint64_t)l.bucket_n * 2 <= l.unit_n)
        l.bucket_n *= 2;
    l.shards = segment_pages(sizeof(struct shm_limit_header));
    l.buckets = l.shards + (uint64_t)l.shard_n * sizeof(struct shm_limit_shard);
    l.units = table_align(l.buckets + sizeof(uint64_t) * l.shard_n * l.bucket_n, CACHE_LINE);
    l.size = table_align(l.units + (uint64_t)l.shard_n * l.unit_n * SHM_LIMIT_UNIT, CACHE_LINE);
    assert(l.unit_n >= 1 && (l.bucket_n & (l.bucket_n - 1)) == 0);
    return l;
}

static size_t limit_size(const void *shape)
{
    uint64_t size = is_possible_limit(shape) ? limit_layout(shape).size : 0;

    assert(size % CACHE_LINE == 0);
    return size <= PTRDIFF_MAX ? (size_t)size : 0;
}

void shm_limit_set_text(struct shm_limit_shape *shape, const char *text, size_t n)
{
    for (uint64_t i = 0; i < 2; i++)
        shape->text[i] = siphash((const uint64_t[2]) { i, 0 }, text, n);
}

static int init_limit(void *memory, const void *shape)
{
    struct shm_limit_header *header = memory;

    assert(limit_size(shape) != 0 && (uintptr_t)memory % CACHE_LINE == 0);
    assert(header->magic == 0);
    arc4random_buf(header->seed, sizeof(header->seed));
    header->shape = *(const struct shm_limit_shape *)shape;
    header->revision = SHM_LIMIT_REVISION;
    header->magic = SHM_LIMIT_MAGIC;
    return 0;
}

static bool is_limit(const void *memory, const void *shape)
{
    const struct shm_limit_header *header = memory;

    return header->magic == SHM_LIMIT_MAGIC && header->revision == SHM_LIMIT_REVISION &&
           memcmp(&header->shape, shape, sizeof(header->shape)) == 0;
}

void shm_limit_open(
    struct shm_limit *limit, void *memory, const struct shm_limit_shape *shape, struct slot_id id)
{
    struct layout l = limit_layout(shape);
    struct shm_limit_header *header = memory;
    char *base = memory;

    assert((uintptr_t)base % CACHE_LINE == 0 && slot_id_is_valid(id));
    *limit = (struct shm_limit) {
        .table = {
            .shard_n = l.shard_n,
            .bucket_n = l.bucket_n,
            .entry_n = l.unit_n,
            .shard_shift = l.shard_bits > 0 ? 64 - l.shard_bits : 0,
            .home_mask = ~(UINT64_MAX >> l.shard_bits) | (l.bucket_n - 1),
            .head_shift = 3,
            .shards = base + l.shards,
            .buckets = base + l.buckets,
            .entries = base + l.units,
            .stride = SHM_LIMIT_UNIT,
            .shard_stride = (uint64_t)l.unit_n * SHM_LIMIT_UNIT,
            .locker = { .id = id, .released = header->workers.released },
        },
        .header = header,
        .shards = (void *)(base + l.shards),
    };
    RB_INIT(&limit->counts);
}

static void acquire_limit_slot(void *memory, const void *shape, struct slot_id id)
{
    (void)shape;
    table_worker_begins(&((struct shm_limit_header *)memory)->workers, id);
}

/* Takes out all of a worker's counts, by one store. */
static void release_limit_slot(void *memory, const void *shape, struct slot_id id)
{
    struct shm_limit_header *header = memory;

    (void)shape;
    if (table_worker_ends(&header->workers, id.slot))
        ZONE_STORE(header->deaths, ZONE_LOAD(header->deaths) + 1);
}

const struct zone_kind shm_limit_kind = {
    .name = "limit",
    .size = limit_size,
    .init = init_limit,
    .is = is_limit,
    .header = sizeof(struct shm_limit_header),
    .slot_acquired = acquire_limit_slot,
    .slot_released = release_limit_slot,
};

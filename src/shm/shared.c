/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared memory's life, and the totals of its counters, each of one moment between two folds.
 * The numbers in workers' pages are summed unchecked; no other worker-writable memory is
 * trusted. */
#include "shm/shared.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>

/* The unit of times of chains, and the greatest distance of an entry from now, either way. */
#define CHAIN_UNIT_SHIFT 6
#define CHAIN_OLD_UNITS 32
#define CHAIN_AHEAD_UNITS 8
#define READS_MAX 1000 /* reads of the totals while a fold does not end */

static_assert(offsetof(struct shared_published, folded) == 16, "the layout is versioned");
static_assert(offsetof(struct shared_common, accept_mutex) == 0, "the mutex begins a page");
static_assert(offsetof(struct chains, used) == 16 * CHAINS_N, "the layout is versioned");
static_assert(sizeof(struct shared_common) <= 4096, "a page is enough");

/* Offset of the common page. */
static size_t common_at(void)
{
    return segment_pages(sizeof(struct shared_published));
}

static size_t size_of_memory(void)
{
    assert(sizeof(struct shared_common) <= segment_page());
    assert(sizeof(struct slot) <= segment_page());
    return common_at() + (1 + SLOT_MAX) * segment_page();
}

/* Finds the parts of the mapped memory. */
static void find_parts(struct shared *shared)
{
    shared->page = segment_page();
    shared->published = shared->segment.base;
    shared->common = (void *)((char *)shared->segment.base + common_at());
}

struct shared *shared_create(bool is_single)
{
    struct shared *shared = calloc(1, sizeof(*shared));
    int error;

    if (shared == NULL)
        return NULL;
    shared->segment = SEGMENT_CLOSED;
    if (is_single
            ? segment_create_private(&shared->segment, size_of_memory()) == -1
            : segment_create(&shared->segment, "forkbeard:shared", size_of_memory()) != NULL) {
        error = errno;
        shared_destroy(&shared);
        errno = error;
        return NULL;
    }
    find_parts(shared);
    shared->created = ticks_mark();
    shared->published->magic = SHARED_MAGIC;
    shared->published->version = SHARED_VERSION;
    return shared;
}

void shared_destroy(struct shared **shared)
{
    if (*shared == NULL)
        return;
    segment_close(&(*shared)->segment);
    free(*shared);
    *shared = NULL;
}

const char *shared_enter(struct shared *shared, struct slot_id id)
{
    const struct segment_part parts[] = {
        { .offset = common_at(), .size = shared->page },
        {
            .offset = common_at() + (1 + id.slot % SLOT_MAX) * shared->page,
            .size = shared->page,
        },
    };
    const char *failed;

    assert(slot_id_is_valid(id) && id.slot / SLOT_MAX == shared->half);
    failed = segment_enter(&shared->segment, parts, sizeof(parts) / sizeof(parts[0]));
    if (failed == NULL)
        find_parts(shared);
    return failed;
}

void shared_begin(struct shared *shared, uint32_t half, uint32_t serial)
{
    assert(half < SLOT_HALVES);
    assert(shared->slot_n == 0);
    shared->half = half;
    shared->serial = serial;
}

uint32_t shared_serial(const struct shared *shared)
{
    uint32_t greatest =
        shared->other_serial > shared->serial ? shared->other_serial : shared->serial;

    for (uint32_t i = 0; i < shared->slot_n; i++)
        if (shared->records[i].serial > greatest)
            greatest = shared->records[i].serial;
    return greatest < UINT32_MAX ? greatest : 0; /* the next ones begin again */
}

void shared_note_serial(struct shared *shared, uint32_t serial)
{
    assert(shared->slot_n <= SLOT_MAX);
    if (serial > shared->other_serial)
        shared->other_serial = serial;
}

void shared_totals(struct shared *shared, uint64_t totals[COUNTERS])
{
    const struct shared_published *published = shared->published;

    assert(totals != NULL);
    /* A master's death within a fold leaves the number odd: reads of an unchanged number are
     * bounded. sched_yield() gives the processor to a waiting master. */
    for (int reads = 0; reads < READS_MAX;) {
        uint32_t folds = published->folds, n = published->slot_n;

        for (int i = 0; i < COUNTERS; i++)
            totals[i] = published->folded.n[i];
        for (uint32_t s = 0; s < n && s < SLOT_MAX; s++)
            for (int i = 0; i < COUNTERS; i++)
                totals[i] += shared_slot_at(shared, s)->counters.n[i];
        if (folds != published->folds) {
            reads = 0;
        } else if (folds % 2 == 0) {
            return;
        } else {
            reads++;
            sched_yield();
        }
    }
}

/* Chains are pairs without a lock: a pair changed by two workers, or during a read, fits no key. */
static uint16_t units_of(uint64_t ms)
{
    return (uint16_t)(ms >> CHAIN_UNIT_SHIFT);
}

static uint64_t sum_of(uint64_t key, uint64_t value)
{
    uint64_t mixed = value * UINT64_C(0x9e3779b97f4a7c15);

    return key ^ mixed ^ mixed >> 32;
}

void shared_put_chain(
    struct chains *chains, uint64_t key, uint16_t tag, uint32_t chain, uint64_t now_ms)
{
    uint64_t value = (uint64_t)chain << 32 | (uint64_t)tag << 16 | units_of(now_ms);
    unsigned i = key % CHAINS_N;

    assert(chain != 0);
    atomic_store(&chains->used, 1);
    atomic_store(&chains->entries[i].value, value);
    atomic_store(&chains->entries[i].sum, sum_of(key, value));
}

uint32_t shared_take_chain(struct chains *chains, uint64_t key, uint16_t tag, uint64_t now_ms)
{
    unsigned i = key % CHAINS_N;
    uint64_t sum = atomic_load(&chains->entries[i].sum);
    uint64_t value = atomic_load(&chains->entries[i].value);
    uint16_t age = (uint16_t)(units_of(now_ms) - (uint16_t)value + CHAIN_AHEAD_UNITS);

    assert(i < CHAINS_N && CHAIN_OLD_UNITS + CHAIN_AHEAD_UNITS < UINT16_MAX);
    if (sum == 0 || sum != sum_of(key, value) ||
        !atomic_compare_exchange_strong(&chains->entries[i].sum, &sum, 0))
        return 0;
    if (age > CHAIN_OLD_UNITS + CHAIN_AHEAD_UNITS || (uint16_t)(value >> 16) != tag)
        return 0;
    return (uint32_t)(value >> 32);
}

static void check_slot(const struct shared *shared, uint32_t i)
{
    const struct slot_record *record = &shared->records[i];
    const struct slot *slot = shared_slot_at(shared, i);
    uint64_t now = heartbeat_now(&slot->heartbeat);

    assert(!record->used || record->serial != 0);
    assert(shared->published->slots[i].serial == (record->used ? record->serial : 0));
    assert((now & 0xff) < CALLBACKS);
    for (int gauge = COUNTER_GAUGES; gauge < COUNTERS; gauge++)
        assert((int64_t)slot->counters.n[gauge] >= 0 &&
               (record->used || slot->counters.n[gauge] == 0));
}

void shared_check(struct shared *shared)
{
    const struct shared_published *published = shared->published;

    assert(published->magic == SHARED_MAGIC && published->version == SHARED_VERSION);
    assert(shared->slot_n <= SLOT_MAX && shared->half < SLOT_HALVES);
    assert(published->slot_n == shared->slot_n);
    assert(published->folds % 2 == 0);
    for (int gauge = COUNTER_GAUGES; gauge < COUNTERS; gauge++)
        assert(published->folded.n[gauge] == 0);
    for (uint32_t i = 0; i < shared->slot_n; i++)
        check_slot(shared, i);
}

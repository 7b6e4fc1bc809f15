/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared region's life, and the totals of its counters. A total is read while workers count and
 * the master folds, and is of one moment between two folds. */
#include "shm/shared.h"

#include <assert.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>

#define READS_MAX 1000 /* reads of the totals while a fold does not end */

static_assert(offsetof(struct shared, accept_mutex) % CACHE_LINE == 0, "the mutex begins a line");
static_assert(offsetof(struct shared, slots) == 2 * CACHE_LINE, "the layout is versioned");

struct shared *shared_create(void)
{
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        return NULL;
    assert((uintptr_t)shared % CACHE_LINE == 0);
    shared->magic = SHARED_MAGIC;
    shared->version = SHARED_VERSION;
    return shared;
}

void shared_destroy(struct shared **shared)
{
    if (*shared == NULL)
        return;
    munmap(*shared, sizeof(**shared));
    *shared = NULL;
}

void shared_begin(struct shared *shared, uint32_t half, uint32_t serial)
{
    assert(half < SLOT_HALVES);
    assert(shared->slot_n == 0); /* no worker yet could have written it */
    shared->half = half;
    shared->serial = serial;
}

uint32_t shared_other_half(const struct shared *shared)
{
    return 1 - shared->half % SLOT_HALVES;
}

/* How many slots have been used; no more than there are, whatever a worker has written. */
static uint32_t count_slots(const struct shared *shared)
{
    uint32_t n = shared->slot_n;

    return n < SLOT_MAX ? n : SLOT_MAX;
}

uint32_t shared_serial(const struct shared *shared)
{
    uint32_t greatest = shared->serial, n = count_slots(shared);

    for (uint32_t i = 0; i < n; i++)
        if (shared->slots[i].serial > greatest)
            greatest = shared->slots[i].serial;
    return greatest;
}

static void add_up(struct shared *shared, uint64_t totals[COUNTERS])
{
    uint32_t n = count_slots(shared);

    for (int i = 0; i < COUNTERS; i++)
        totals[i] = shared->folded.n[i];
    for (uint32_t s = 0; s < n; s++)
        for (int i = 0; i < COUNTERS; i++)
            totals[i] += shared->slots[s].counters.n[i];
}

void shared_totals(struct shared *shared, uint64_t totals[COUNTERS])
{
    uint32_t folds;

    assert(totals != NULL);
    /* A master that dies within a fold leaves the number odd, so that the reads of one number are
     * bounded. A master that only waits for a processor is given ours. */
    for (int reads = 0; reads < READS_MAX;) {
        folds = shared->folds;
        add_up(shared, totals);
        if (folds != shared->folds) {
            reads = 0;
        } else if (folds % 2 == 0) {
            return;
        } else {
            reads++;
            sched_yield();
        }
    }
}

static void check_slot(const struct slot *slot)
{
    uint64_t now = heartbeat_now(&slot->heartbeat);

    assert(slot->pid == 0 || slot->serial != 0);
    assert((now & 0xff) < CALLBACKS);
    for (int gauge = COUNTER_GAUGES; gauge < COUNTERS; gauge++)
        assert((int64_t)slot->counters.n[gauge] >= 0 &&
               (slot->pid != 0 || slot->counters.n[gauge] == 0));
}

void shared_check(struct shared *shared)
{
    uint32_t n = shared->slot_n;

    assert(shared->magic == SHARED_MAGIC && shared->version == SHARED_VERSION);
    assert(n <= SLOT_MAX && shared->half < SLOT_HALVES);
    assert(shared->folds % 2 == 0);
    for (int gauge = COUNTER_GAUGES; gauge < COUNTERS; gauge++)
        assert(shared->folded.n[gauge] == 0);
    for (uint32_t i = 0; i < n; i++)
        check_slot(&shared->slots[i]);
}

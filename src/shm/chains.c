/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of pairs of words without a lock: a pair written by two workers at once, or changed
 * during a read, fits no key. */
#include "shm/chains.h"

#include <assert.h>

/* The unit of times, and the greatest distance of an entry from now, in past or future: workers'
 * clocks are read once a turn. */
#define UNIT_SHIFT 6
#define OLD_UNITS 32
#define AHEAD_UNITS 8

static_assert(sizeof(struct chains) == 16 * CHAINS_N, "the layout is versioned");
static_assert(CHAINS_N * 16 <= 2048, "it shares a page");

static uint16_t units_of(uint64_t ms)
{
    return (uint16_t)(ms >> UNIT_SHIFT);
}

static uint64_t sum_of(uint64_t key, uint64_t value)
{
    uint64_t mixed = value * UINT64_C(0x9e3779b97f4a7c15);

    return key ^ mixed ^ mixed >> 32;
}

void chains_put(struct chains *chains, uint64_t key, uint16_t tag, uint32_t chain, uint64_t now_ms)
{
    uint64_t value = (uint64_t)chain << 32 | (uint64_t)tag << 16 | units_of(now_ms);
    unsigned i = key % CHAINS_N;

    assert(chain != 0);
    atomic_store(&chains->entries[i].value, value);
    atomic_store(&chains->entries[i].sum, sum_of(key, value));
}

uint32_t chains_take(struct chains *chains, uint64_t key, uint16_t tag, uint64_t now_ms)
{
    unsigned i = key % CHAINS_N;
    uint64_t sum = atomic_load(&chains->entries[i].sum);
    uint64_t value = atomic_load(&chains->entries[i].value);
    uint16_t age = (uint16_t)(units_of(now_ms) - (uint16_t)value + AHEAD_UNITS);

    assert(i < CHAINS_N && OLD_UNITS + AHEAD_UNITS < UINT16_MAX);
    if (sum == 0 || sum != sum_of(key, value) ||
        !atomic_compare_exchange_strong(&chains->entries[i].sum, &sum, 0))
        return 0;
    if (age > OLD_UNITS + AHEAD_UNITS || (uint16_t)(value >> 16) != tag)
        return 0;
    return (uint32_t)(value >> 32);
}

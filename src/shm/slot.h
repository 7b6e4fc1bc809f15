/* SPDX-License-Identifier: BSD-2-Clause */
/* Worker slots: each worker has a page of shared memory that it alone writes. Only the master
 * acquires and releases slots, by records in its private memory.
 *
 * A slot is used again, by one incarnation after another: the slot's number and a serial that
 * counts its incarnations name a worker for as long as anything may remember it. */
#pragma once

#include "shm/heartbeat.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SLOT_MAX 1024 /* slots of a master process */
/* halves of the slot numbers: an upgrade has two master processes */
#define SLOT_HALVES 2
#define CACHE_LINE 128 /* two lines: the prefetcher fetches pairs */

struct shared;

/* The counters of one worker. Only the slot's own worker writes them, so that a plain load and
 * store are enough; the master folds them into the totals when the worker has died. */
enum counter {
    COUNTER_ACCEPTS,   /* connections taken from the kernel */
    COUNTER_HANDLED,   /* accepted connections that were given to a server */
    COUNTER_REQUESTS,  /* served, as the protocols count them */
    COUNTER_RECLAIMED, /* idle connections closed for want of room */
    COUNTER_PASSES,    /* times that clients were left to a worker with fewer, which was woken */
    COUNTER_YIELDS,    /* times that too many clients made the worker let others go first */
    COUNTER_GAUGES,    /* the counters from here on fall again, and end with their worker */
    COUNTER_ACTIVE = COUNTER_GAUGES, /* connections open */
    COUNTER_READING,                 /* open connections with a partial request */
    COUNTER_WRITING,                 /* open connections with output that the peer has not taken */
    COUNTER_SLOTS,                   /* worker_connections in use, or kept for servers */
    COUNTERS,
};

struct counters {
    _Atomic uint64_t n[COUNTERS];
};

/* Adds to a counter of this worker; `by` may be negative for a gauge. */
static inline void counters_add(struct counters *counters, enum counter counter, int64_t by)
{
    uint64_t n = atomic_load_explicit(&counters->n[counter], memory_order_relaxed);

    assert(counter < COUNTERS && (by >= 0 || counter >= COUNTER_GAUGES));
    atomic_store_explicit(&counters->n[counter], n + (uint64_t)by, memory_order_relaxed);
}

/* A slot in one of its incarnations. */
struct slot_id {
    uint32_t slot;   /* below SLOT_HALVES * SLOT_MAX */
    uint32_t serial; /* counts the slot's incarnations, from 1 */
};

enum slot_takes {
    SLOT_TAKES_NONE, /* suspended, draining, or not there yet */
    SLOT_TAKES,
    SLOT_IS_CROWDED, /* takes clients, and closes idle ones for want of room */
};

/* A worker's word about its accepting, for the others to read beside COUNTER_ACTIVE. It alone
 * writes it, and they take no number for true (worker/accept_share.c). */
struct slot_load {
    _Atomic uint32_t takes;  /* clients, now: enum slot_takes */
    _Atomic uint32_t passed; /* descriptor of the passed listener, plus 1 */
    _Atomic uint32_t to;     /* worker number for the clients */
};

/* A worker's page: numbers, all written by the worker, to be read as input. */
struct slot {
    alignas(CACHE_LINE) struct counters counters;
    struct slot_load load;
    struct heartbeat heartbeat; /* whose beginning others read with the load */
};

/* The master's record of a slot. */
struct slot_record {
    bool used;
    uint32_t serial; /* the latest incarnation's; 0: never used */
};

/* The place of a slot's worker, as the master publishes it: its generation, and its number among
 * worker_processes. */
#define PLACE_NUMBER_BITS 10
#define PLACE_NONE UINT32_MAX

static inline uint32_t slot_place(uint32_t generation, uint32_t number)
{
    return generation << PLACE_NUMBER_BITS | number % SLOT_MAX;
}

/* The widths of an incarnation's number: a slot's serials repeat after 8192 workers. */
#define SLOT_BITS 11
#define INCARNATION_BITS 24

/* Returns the incarnation as one number of INCARNATION_BITS bits. */
static inline uint32_t slot_incarnation(struct slot_id id)
{
    return (id.slot | id.serial << SLOT_BITS) & ((1u << INCARNATION_BITS) - 1);
}

/* The half of the slot numbers that an incarnation, which may be invented, has its slot in. */
static inline uint32_t slot_half_of(uint32_t incarnation)
{
    return (incarnation & ((1u << SLOT_BITS) - 1)) / SLOT_MAX;
}

/* Whether an incarnation's serial, 13 bits, equals `serial` or precedes it by less than 4,096. */
static inline bool slot_serial_is_until(uint32_t incarnation, uint32_t serial)
{
    uint32_t width = 1u << (INCARNATION_BITS - SLOT_BITS);

    return ((serial - (incarnation >> SLOT_BITS)) & (width - 1)) < width / 2;
}

/* Whether it can name a worker: for assertions on ids that the caller made or was handed by its
 * master. */
static inline bool slot_id_is_valid(struct slot_id id)
{
    return id.slot < SLOT_HALVES * SLOT_MAX && id.serial != 0;
}

/* The master: acquires a free slot, giving *id; false when every slot is in use. */
bool slot_acquire(struct shared *shared, struct slot_id *id);
/* The master, before it forks the slot's worker: publishes where that belongs. */
void slot_set_place(struct shared *shared, struct slot_id id, uint32_t place);
/* The master, when a slot's worker has died and before it is reaped: frees its locks, folds its
 * counters, zeroes its gauges and its load, releases the slot. Returns whether the worker held the
 * accept mutex. */
bool slot_release(struct shared *shared, struct slot_id id);
/* Any process: whether this incarnation has the slot now, by what the master publishes. The id may
 * be invented. */
bool slot_is_used(const struct shared *shared, struct slot_id id);

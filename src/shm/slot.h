/* SPDX-License-Identifier: BSD-2-Clause */
/* Worker slots: a worker has a page of shared memory, written by the worker alone. Only the master
 * acquires and releases slots, by records in private memory. A slot is reused, by one incarnation
 * after another: the slot's number and a serial, a count of the incarnations, name a worker for as
 * long as anything may remember the worker. */
#pragma once

#include "shm/heartbeat.h"

#include <stdalign.h>

#define SLOT_MAX 1024 /* slots of a master process */
/* halves of the slot numbers: an upgrade has two master processes */
#define SLOT_HALVES 2
#define CACHE_LINE 128 /* two lines: the prefetcher fetches pairs */

struct shared;

/* A worker's counters, written by the worker alone, with plain stores, and folded by the master. */
enum counter {
    COUNTER_ACCEPTS,   /* connections taken from the kernel */
    COUNTER_HANDLED,   /* accepted connections, given to a server */
    COUNTER_REQUESTS,  /* served, as the protocols count them */
    COUNTER_RECLAIMED, /* idle connections closed for want of room */
    COUNTER_PASSES,    /* times that clients were left to a worker with fewer, by a wake-up */
    COUNTER_YIELDS,    /* times of letting other workers go first, after too many clients */
    COUNTER_LOST,      /* log lines, not accepted by a target */
    COUNTER_GAUGES,    /* from here on gauges: fall again, and end with the worker */
    COUNTER_ACTIVE = COUNTER_GAUGES, /* connections open */
    COUNTER_READING,                 /* open connections with a partial request */
    COUNTER_WRITING,                 /* open connections with output not yet taken by the peer */
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
    SLOT_IS_CROWDED, /* takes clients, and closes idle connections for room */
};

/* Whether a worker accepts, for the status. */
enum slot_accepting {
    SLOT_CLOSED, /* not yet, or not any more */
    SLOT_OPEN,
    SLOT_PAUSED, /* suspended: a descriptor or memory was not to be had */
    SLOT_FULL,   /* suspended: no slot of worker_connections is free */
};

/* A worker's state of accepting, for other workers; never trusted (worker/accept_share.c). */
struct slot_load {
    _Atomic uint32_t takes;     /* clients, now: enum slot_takes */
    _Atomic uint32_t passed;    /* descriptor of the passed listener, plus 1 */
    _Atomic uint32_t to;        /* worker number for the clients */
    _Atomic uint32_t accepting; /* enum slot_accepting; read by the master alone */
};

/* The certificate with the first end, of all known to a keeper; never trusted. */
struct slot_expiry {
    _Atomic int64_t end;   /* seconds since the epoch; 0: none is known */
    _Atomic uint32_t file; /* its index in the configuration */
};

/* A worker's page: numbers, all written by the worker, to be read as input. */
struct slot {
    alignas(CACHE_LINE) struct counters counters;
    struct slot_load load;
    struct heartbeat heartbeat; /* whose beginning others read with the load */
    struct slot_expiry expiry;
};

/* The master's record of a slot. */
struct slot_record {
    bool used;
    uint32_t serial; /* the latest incarnation's; 0: never used */
};

/* The place of a slot's worker, published by the master: generation, and number of the worker. */
#define PLACE_NUMBER_BITS 10
#define PLACE_NONE UINT32_MAX

static inline uint32_t slot_place(uint32_t generation, uint32_t number)
{
    return generation << PLACE_NUMBER_BITS | number % SLOT_MAX;
}

/* The widths of an incarnation's number: a slot's serials repeat after 8192 workers. */
#define SLOT_BITS 11
#define INCARNATION_BITS 24

/* Returns the incarnation as a number of INCARNATION_BITS bits. */
static inline uint32_t slot_incarnation(struct slot_id id)
{
    return (id.slot | id.serial << SLOT_BITS) & ((1u << INCARNATION_BITS) - 1);
}

/* Returns the half of the slot numbers of an incarnation, perhaps invented. */
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

/* Whether an id can name a worker: for assertions on ids of the caller or the master. */
static inline bool slot_id_is_valid(struct slot_id id)
{
    return id.slot < SLOT_HALVES * SLOT_MAX && id.serial != 0;
}

/* The master: acquires a free slot, giving *id; false when every slot is in use. */
bool slot_acquire(struct shared *shared, struct slot_id *id);
/* The master, before the fork of the slot's worker: publishes the worker's place. */
void slot_set_place(struct shared *shared, struct slot_id id, uint32_t place);
/* The master, before reaping a slot's dead worker: frees the worker's locks, folds the counters,
 * zeroes gauges, load and expiry, releases the slot. Returns whether the worker held the accept
 * mutex. */
bool slot_release(struct shared *shared, struct slot_id id);
/* Any process: whether this incarnation, perhaps invented, has the slot now. */
bool slot_is_used(const struct shared *shared, struct slot_id id);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Worker slots: each worker has a page of shared memory that it alone writes. Only the master
 * acquires and releases slots, by records in its private memory.
 *
 * A slot is used again, by one incarnation after another: the slot's number and a serial that
 * counts its incarnations name a worker for as long as anything may remember it. */
#pragma once

#include "shm/counters.h"
#include "shm/heartbeat.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SLOT_MAX 1024 /* slots of a master process */
/* halves of the slot numbers, one for each of two master processes during an upgrade */
#define SLOT_HALVES 2
#define CACHE_LINE 128 /* two lines: the prefetcher fetches pairs */

struct shared;

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
    _Atomic uint32_t passed; /* descriptor of the listener whose clients it has left, and 1 */
    _Atomic uint32_t to;     /* number of the worker that it has left them to */
};

/* A worker's page: numbers, which mean nothing but what its worker says of itself. */
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

/* The widths of the number of an incarnation, whose serials come again after 8192 of a slot. */
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

/* Whether an incarnation's serial is this one or one of the 4,095 before it, of 13 bits. */
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

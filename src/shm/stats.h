/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics, as a zone: a directory of entries, and the numbers of each worker for each entry,
 * written by the worker alone, with plain stores. Servers have an entry for each `listen`, with the
 * numbers of clients; groups have one for each of their servers, with the numbers of tries. Nothing
 * is counted down: an entry's clients or tries are all begun but for ended ones, and those of a
 * dead worker have ended. An entry lasts as long as the zone, over reloads and upgrades. */
#pragma once

#include "shm/zone.h"

#include <stdatomic.h>
#include <stdint.h>

#define STATS_ENTRIES_MOST 1024
#define STATS_ENDS 32                   /* causes of a session's end, but for two the user's */
#define STATS_END_MOVED 0               /* the client has gone to a server of a second entry */
#define STATS_END_DIED (STATS_ENDS - 1) /* with the worker; counted by the master */
#define STATS_TRY_ENDS 5                /* ends of a try, the last with the worker */
#define STATS_TRY_TIMES 3               /* kinds of times, the user's */
#define STATS_TROUBLES 4                /* the user's */
#define STATS_BUCKETS 28                /* of times */

/* Bytes that a connection's owner has received and sent. */
struct stats_traffic {
    _Atomic uint64_t received, sent;
};

/* Times: their sum, and how many were below 1 ms, below 2 ms, below 4 ms ... */
struct stats_times {
    _Atomic uint64_t ms;
    _Atomic uint64_t n[STATS_BUCKETS];
};

/* A worker's numbers of a `listen`. */
struct stats {
    _Atomic uint64_t accepts; /* clients, or moved from a second entry */
    struct stats_traffic traffic;
    _Atomic uint64_t ended[STATS_ENDS];
    struct stats_times lengths; /* of ended sessions, but for moved ones */
};

/* A worker's numbers of a server of a group, or of a group's queue: the waits, and how long. */
struct stats_tries {
    _Atomic uint64_t begun;
    struct stats_traffic traffic;
    _Atomic uint64_t ended[STATS_TRY_ENDS];
    _Atomic uint64_t troubles[STATS_TROUBLES];
    struct stats_times times[STATS_TRY_TIMES];
};

/* The sums over all workers, living and dead, in the same order. */
struct stats_sum_of_times {
    uint64_t ms;
    uint64_t n[STATS_BUCKETS];
};

struct stats_totals {
    uint64_t accepts, received, sent;
    uint64_t ended[STATS_ENDS];
    struct stats_sum_of_times lengths;
    uint64_t active; /* clients, now */
};

struct stats_tries_totals {
    uint64_t begun, received, sent;
    uint64_t ended[STATS_TRY_ENDS];
    uint64_t troubles[STATS_TROUBLES];
    struct stats_sum_of_times times[STATS_TRY_TIMES];
    uint64_t active; /* tries that run, now */
};

/* The name of an entry; longer texts are cut. */
struct stats_key {
    const char *protocol; /* "": none */
    const char *address;
    const char *name; /* of the server, or of the group; "": none */
};

/* What an entry counts. */
enum stats_of { STATS_OF_LISTENS, STATS_OF_TRIES };

/* The shape of a new zone; memory with room for more or fewer entries fits, too. */
struct stats_shape {
    enum stats_of of;
    uint32_t capacity; /* 2 to STATS_ENTRIES_MOST, and fewer of STATS_OF_TRIES */
};

extern const struct zone_kind stats_kind;

/* The functions below get the memory of an open zone. */

/* The master, before the zone's workers are forked: takes the capacity of the memory over. */
void stats_open(const void *memory, struct stats_shape *shape);
/* The master: returns the number of the key's entry, added if new; 0, the entry of all keys without
 * room. */
uint32_t stats_enter(void *memory, const struct stats_key *key);
/* Returns how many entries there are, with entry 0. */
uint32_t stats_n(const void *memory);
/* Returns the key of an entry, within the memory. */
struct stats_key stats_key_of(const void *memory, uint32_t entry);
/* Returns the numbers of an entry that the slot's worker counts: a struct stats or stats_tries. */
void *stats_of_slot(void *memory, uint32_t slot, uint32_t entry);
/* Sums an entry, into the struct with the totals; no number ever falls but for `active`. */
void stats_read(const void *memory, uint32_t entry, void *totals, size_t size);
/* Sum one number of an entry, by its place in a struct stats or stats_tries, or what runs. */
uint64_t stats_number(const void *memory, uint32_t entry, uint32_t number);
uint64_t stats_active(const void *memory, uint32_t entry);
/* Returns the clients or tries of all entries. */
uint64_t stats_sum_active(const void *memory);

/* Adds to a number of the caller's own worker. */
static inline void stats_add(_Atomic uint64_t *number, uint64_t by)
{
    uint64_t n = atomic_load_explicit(number, memory_order_relaxed);

    atomic_store_explicit(number, n + by, memory_order_relaxed);
}

/* Counts an end, as the last number of a client or try. */
static inline void stats_add_end(_Atomic uint64_t *number)
{
    uint64_t n = atomic_load_explicit(number, memory_order_relaxed);

    /* a reader of the end reads the begin, too */
    atomic_store_explicit(number, n + 1, memory_order_release);
}

static inline void stats_add_time(struct stats_times *times, uint64_t ms)
{
    unsigned bucket = 63 - (unsigned)__builtin_clzll(ms << 1 | 1);

    stats_add(&times->ms, ms);
    stats_add(&times->n[bucket < STATS_BUCKETS ? bucket : STATS_BUCKETS - 1], 1);
}

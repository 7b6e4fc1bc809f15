/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of servers, as a zone: a directory of entries, one for each `listen` of a server, and
 * the numbers of each worker's clients, written by the worker alone, with plain stores. Nothing is
 * counted down: an entry's clients are all accepted clients but for ended clients, and the clients
 * of a dead worker have ended. An entry lasts as long as the zone, over reloads and upgrades. */
#pragma once

#include "shm/zone.h"

#include <stdatomic.h>
#include <stdint.h>

#define STATS_ENTRIES_MOST 1024
#define STATS_ENDS 32                   /* causes of a session's end, but for two the user's */
#define STATS_END_MOVED 0               /* the client has gone to a server of a second entry */
#define STATS_END_DIED (STATS_ENDS - 1) /* with the worker; counted by the master */
#define STATS_LENGTHS 28                /* buckets of the sessions' lengths */

/* Bytes that a connection's owner has received and sent. */
struct stats_traffic {
    _Atomic uint64_t received, sent;
};

/* A worker's numbers of an entry. */
struct stats {
    _Atomic uint64_t accepts; /* clients, or moved from a second entry */
    struct stats_traffic traffic;
    _Atomic uint64_t length_ms; /* of all ended sessions */
    _Atomic uint64_t ended[STATS_ENDS];
    /* ended sessions, but for moved ones: below 1 ms, below 2 ms, below 4 ms ... */
    _Atomic uint64_t lengths[STATS_LENGTHS];
};

/* The sums over all workers, living and dead, in the same order. */
struct stats_totals {
    uint64_t accepts, received, sent, length_ms;
    uint64_t ended[STATS_ENDS];
    uint64_t lengths[STATS_LENGTHS];
    uint64_t active; /* clients, now */
};

/* The name of an entry; longer texts are cut. */
struct stats_key {
    const char *protocol; /* "": none */
    const char *address;
    const char *name; /* of the server; "": none */
};

/* The shape of a new zone; memory with room for more or fewer entries fits, too. */
struct stats_shape {
    uint32_t capacity; /* 2 to STATS_ENTRIES_MOST */
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
/* Returns the numbers of an entry that the slot's worker counts. */
struct stats *stats_of_slot(void *memory, uint32_t slot, uint32_t entry);
/* Sums an entry; no number ever falls but for `active`. */
void stats_read(const void *memory, uint32_t entry, struct stats_totals *totals);

/* Adds to a number of the caller's own worker. */
static inline void stats_add(_Atomic uint64_t *number, uint64_t by)
{
    uint64_t n = atomic_load_explicit(number, memory_order_relaxed);

    atomic_store_explicit(number, n + by, memory_order_relaxed);
}

/* Counts the end of a client, as the client's last number. */
static inline void stats_add_end(struct stats *stats, unsigned end)
{
    _Atomic uint64_t *number = &stats->ended[end < STATS_END_DIED ? end : STATS_END_MOVED];
    uint64_t n = atomic_load_explicit(number, memory_order_relaxed);

    /* a reader of the end reads the accept, too */
    atomic_store_explicit(number, n + 1, memory_order_release);
}

/* Counts the length of a session that has ended. */
static inline void stats_add_length(struct stats *stats, uint64_t ms)
{
    unsigned bucket = ms == 0 ? 0 : 64 - (unsigned)__builtin_clzll(ms);

    stats_add(&stats->length_ms, ms);
    stats_add(&stats->lengths[bucket < STATS_LENGTHS ? bucket : STATS_LENGTHS - 1], 1);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of servers' names, as of the latest good answers, in memory that outlives the
 * asking process, for the next configuration and the next binary. All processes read the table, and
 * check the contents; only an asking process writes, to claimed entries: a claim is a kernel lock,
 * which ends with the process.
 *
 * An entry belongs to a server of a group. One of the two copies is whole at any time, even
 * after the writer's death. */
#pragma once

#include "names/message.h"
#include "shm/zone.h"
#include "upstream/resolve_set.h"
#include "upstream/upstream.h"

#include <stdatomic.h>

/* Limit of servers with names in a configuration. */
#define ADDRESSES_NAMES 4096
#define ADDRESSES_NONE UINT32_MAX
/* Bytes of the reason for a name without an answer, with the NUL. */
#define ADDRESSES_WHY 376

/* Names an entry. */
struct addresses_key {
    uint64_t part[2];
};

/* The age of an entry's addresses. Times are the loop's monotonic ms; 0: never. */
struct addresses_state {
    uint32_t n;              /* addresses */
    uint64_t answered_ms;    /* the latest answer that was whole */
    uint64_t failed_ms;      /* since when there has been none; 0: the latest round was whole */
    char why[ADDRESSES_WHY]; /* "NAME: REASON", printable; "": there is none */
};

struct addresses_item {
    uint8_t bytes[16];
    uint32_t scope; /* an IPv6 address's */
    uint32_t weight;
    uint16_t port, priority;
    uint8_t is_in6;
    uint8_t unused[3];
};

struct addresses_copy {
    uint32_t n, is_cut;
    struct addresses_item list[RESOLVE_ADDRESSES];
};

struct addresses_entry {
    alignas(CACHE_LINE) _Atomic uint32_t version; /* the lowest bit selects the copy in force */
    _Atomic uint32_t answered;                    /* a round has ended */
    _Atomic uint64_t answered_ms, failed_ms;
    char why[ADDRESSES_WHY];
    struct addresses_copy copies[2];
};

struct addresses_table {
    uint32_t magic, entries;
    uint64_t unit;
    _Atomic uint32_t changes;
    /* a search in the entries would touch, and so take, all pages; 0 first: free */
    _Atomic uint64_t keys[ADDRESSES_NAMES][2];
    struct addresses_entry list[ADDRESSES_NAMES];
};

/* Adds the zone of the addresses to the configuration's; NULL with errno. */
struct zone *addresses_declare(struct zones *zones, struct arena *arena);
struct addresses_key addresses_key_of(
    const struct upstream *upstream, const struct upstream_server *server);
/* Writes the name to ask for, of the host or the service; "": too long. */
const char *addresses_question(const struct upstream_server *server, char text[MESSAGE_NAME]);
/* Changes whenever addresses do, or a first question about a name has ended. */
uint32_t addresses_changes(const struct zone *zone);
/* Returns the entry, or ADDRESSES_NONE. */
uint32_t addresses_find(const struct zone *zone, const struct addresses_key *key);
/* Reads the entry's addresses, unless *version is current, into a set with all room, and *answered:
 * whether a question has ended; false: no change, or the entry is not the key's. */
bool addresses_read(const struct zone *zone, uint32_t entry, const struct addresses_key *key,
    uint32_t *version, bool *answered, struct resolve_set *set);
/* Reads the rest; false: the entry is not the key's. */
bool addresses_read_state(const struct zone *zone, uint32_t entry, const struct addresses_key *key,
    struct addresses_state *state);

static inline struct addresses_entry *addresses_entry_of(const struct zone *zone, uint32_t entry)
{
    assert(entry < ADDRESSES_NAMES);
    return &((struct addresses_table *)zone_memory(zone))->list[entry];
}

/* A process with questions about names, and the claimed entries. */
struct addresses_writer {
    const struct zone *zone;
    uint64_t claimed[ADDRESSES_NAMES / 64];
};

/* Claims the key's entry, perhaps a new entry; ADDRESSES_NONE: a different process's. */
uint32_t addresses_claim(struct addresses_writer *writer, const struct addresses_key *key);
/* Writes the addresses of a claimed entry. */
void addresses_write(
    struct addresses_writer *writer, uint32_t entry, const struct resolve_set *set);
/* Notes the end of a round of questions: without a reason after a whole round. */
void addresses_note(struct addresses_writer *writer, uint32_t entry, uint64_t now_ms,
    const char *name, const char *why);

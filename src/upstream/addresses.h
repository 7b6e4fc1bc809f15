/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses that names of servers stand for, as the latest good answers had them, in memory
 * that outlives whoever has asked: the next configuration and the next binary have it, too. Only a
 * process that asks can write there. All others read it, and check what they read.
 *
 * An entry belongs to a server of a group. Of its two copies one is whole at any time, even where
 * its writer has died. A process writes to entries that it has claimed, by a lock of the kernel's
 * that ends with the process. */
#pragma once

#include "names/message.h"
#include "shm/zone.h"
#include "upstream/resolve_set.h"
#include "upstream/upstream.h"

/* Servers with names that a configuration can have. */
#define KNOWN_NAMES 4096
#define KNOWN_NONE UINT32_MAX
/* Bytes of the reason why a name has no answer, with its NUL. */
#define KNOWN_WHY 376

/* Names an entry. */
struct known_key {
    uint64_t part[2];
};

/* The age of an entry's addresses, and the reason why none is newer. Times are the loop's monotonic
 * ms; 0: never. */
struct known_state {
    uint32_t n;           /* addresses */
    uint64_t answered_ms; /* the latest answer that was whole */
    uint64_t failed_ms;   /* since when there has been none; 0: the latest one was whole */
    char why[KNOWN_WHY];  /* "NAME: REASON", printable; "": there is none */
};

/* Adds the zone of these addresses to the configuration's; NULL with errno. */
struct zone *known_declare(struct zones *zones, struct arena *arena);

/* Returns the name of the server's entry. */
struct known_key known_key_of(
    const struct upstream *upstream, const struct upstream_server *server);

/* Writes the name that is asked for, the host's or that of its service; "" where it is too long. */
const char *known_question(const struct upstream_server *server, char text[MESSAGE_NAME]);

/* Changes whenever addresses do, or a first question about a name has ended. */
uint32_t known_changes(const struct zone *zone);
/* Returns the entry, or KNOWN_NONE. */
uint32_t known_find(const struct zone *zone, const struct known_key *key);
/* Reads the addresses of an entry, whose set has room for RESOLVE_ADDRESSES, if *version is not
 * theirs, and says in *answered whether a question has ended; false: they are the same, or the
 * entry is not the key's. */
bool known_read(const struct zone *zone, uint32_t entry, const struct known_key *key,
    uint32_t *version, bool *answered, struct resolve_set *set);
/* Reads the rest; false: the entry is not the key's. */
bool known_read_state(const struct zone *zone, uint32_t entry, const struct known_key *key,
    struct known_state *state);

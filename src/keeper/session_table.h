/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions with servers, by a key, in memory that all keepers of a daemon share, over reloads and
 * upgrades: bytes, which the table never looks into.
 *
 * Responsible for bytes that come back whole or not at all, whatever writers do at once, and
 * wherever a writer is killed; and for the end of their life. A full table forgets what was written
 * longest ago. Never waits. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The bytes of a key, and of the longest session. */
#define SESSION_KEY 32
#define SESSION_MOST (8192 - 64)

struct session_slot;

struct session_table {
    struct session_slot *slots; /* memory behind the keys of tickets */
};

/* The mark of bytes in the table, by which later bytes of the key are told from them. */
struct session_found {
    uint64_t sum;
    uint64_t ends_ms; /* end of their life; 0: none were found */
};

/* Finds the table in memory of TLS_TICKETS_SIZE bytes, zero at first, which lives longer. */
void session_table_init(struct session_table *table, void *memory);
/* Copies the bytes of a key, with times by the monotonic clock as all times here. Returns how many;
 * 0: none that live. The caller overwrites the copy. */
size_t session_table_find(const struct session_table *table, const uint8_t key[SESSION_KEY],
    uint64_t now_ms, uint8_t out[SESSION_MOST], struct session_found *found);
/* Puts 1 to SESSION_MOST bytes, in the place of those of the same key. */
void session_table_put(const struct session_table *table, const uint8_t key[SESSION_KEY],
    uint64_t now_ms, uint64_t ends_ms, const uint8_t *p, size_t n);
/* Forgets the found bytes of a key, unless replaced since. */
void session_table_drop(const struct session_table *table, const uint8_t key[SESSION_KEY],
    const struct session_found *found);

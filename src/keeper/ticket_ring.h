/* SPDX-License-Identifier: BSD-2-Clause */
/* The keys of tickets: a ring of three in memory that all keepers share. The newest key encrypts,
 * and each decrypts.
 *
 * Responsible for making keys and replacing them in time, whichever keeper finds a new key due, and
 * for a key's integrity: a keeper may be killed at any moment, and what half a key stands in is
 * found by a checksum and never used. Never waits for another process, and needs no lock to read.
 * Invariant: key number n is in slot n mod 3. */
#pragma once

#include "tls/engine.h"

#define TICKET_NAME 16
#define TICKET_SECRET_MOST 32

struct ticket_key {
    uint8_t name[TICKET_NAME];
    uint8_t cipher[TICKET_SECRET_MOST]; /* the key of AES-CBC */
    uint8_t mac[TICKET_SECRET_MOST];    /* the key of HMAC-SHA256 */
    uint8_t size;                       /* bytes of either: 16 or 32 */
};

enum ticket_age { TICKET_UNKNOWN, TICKET_NEWEST, TICKET_OLDER };

struct ticket_ring {
    struct ticket_memory *memory;
    uint64_t lifetime_ms; /* age of a key at which the next is made */
};

/* Uses memory of TLS_TICKETS_SIZE bytes, which outlives the ring, is aligned as malloc()'s, and was
 * zeroed before its first use. */
void ticket_ring_init(struct ticket_ring *ring, void *memory, uint64_t lifetime_ms);
/* Copies the newest key, after making one where it is due; `now_ms` is the monotonic clock's. -1:
 * there is none, as another keeper is making the first, or without random bytes. */
int ticket_ring_take(const struct ticket_ring *ring, uint64_t now_ms, struct ticket_key *key);
/* Copies the key of a name, unless unknown. */
enum ticket_age ticket_ring_find(
    const struct ticket_ring *ring, const uint8_t name[TICKET_NAME], struct ticket_key *key);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains of connections from workers to listeners of their own daemon: the worker that accepts a
 * connection finds out the listeners of the chain so far.
 *
 * An entry lasts from the connect() to the accept(), two seconds at most, and gives way to a new
 * entry of equal place: a lost chain begins anew. Any worker may write here: a chain may end a
 * session, and is trusted for no other purpose. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define CHAINS_N 128

struct chains {
    struct {
        _Atomic uint64_t sum;   /* mixed of the key and the value; 0: empty */
        _Atomic uint64_t value; /* chain, tag and time */
    } entries[CHAINS_N];
};

/* Notes the chain of a connection, not 0, by a key known to both ends. Only readers with an equal
 * tag get the chain. */
void chains_put(struct chains *chains, uint64_t key, uint16_t tag, uint32_t chain, uint64_t now_ms);
/* Returns and forgets the chain of a connection; 0: unknown. */
uint32_t chains_take(struct chains *chains, uint64_t key, uint16_t tag, uint64_t now_ms);

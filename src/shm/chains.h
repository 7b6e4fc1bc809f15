/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains of connections that workers make to listeners of their own daemon: the worker that accepts
 * one finds out through which listeners its chain has come.
 *
 * An entry lasts from the connect() to the accept(), two seconds at most, and gives way to another
 * of its place: a chain that is lost begins anew. Any worker may write here: a chain that is found
 * may end a session, and is believed for nothing else. */
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

/* Notes the chain of a connection, not 0, by a key that both ends know. A chain is read by those of
 * the same tag alone. */
void chains_put(struct chains *chains, uint64_t key, uint16_t tag, uint32_t chain, uint64_t now_ms);
/* Returns the chain of a connection and forgets it; 0: none is known. */
uint32_t chains_take(struct chains *chains, uint64_t key, uint16_t tag, uint64_t now_ms);

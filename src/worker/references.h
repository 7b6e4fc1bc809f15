/* SPDX-License-Identifier: BSD-2-Clause */
/* References of connections and of workers, the same in every worker: from the highest bits the
 * incarnation of a worker's slot, and a name.
 *
 * A worker's name is the rest of its serial, so that 2^32 lives of a slot differ. A connection has
 * a greater name, which cannot be guessed. A reference without a target is old, or a guess. */
#pragma once

#include "shm/slot.h"

#include <forkbeard/types.h>
#include <stdbool.h>
#include <stdint.h>

struct fb_conn;
struct fb_worker;
struct worker;

#define REFERENCES_NAME_BITS (64 - INCARNATION_BITS)

/* Returns the incarnation that the reference names. */
static inline uint32_t references_incarnation(fb_ref ref)
{
    return (uint32_t)(ref >> REFERENCES_NAME_BITS);
}

/* Whether it names a worker. */
bool references_is_worker(fb_ref ref);
/* Returns the reference of a slot's worker. */
fb_ref references_of_slot(struct slot_id id);
/* Return the worker's own incarnation and reference. */
uint32_t references_own(const struct worker *worker);
fb_ref references_own_worker(const struct worker *worker);

/* Finds a living connection of the worker, or NULL. */
struct fb_conn *references_find(struct worker *worker, fb_ref ref);
/* Finds a connection of this protocol, see fb_find(); NULL for a foreign protocol's, too. */
struct fb_conn *references_find_for(struct fb_worker *handle, fb_ref ref);
/* Whether a reference without a connection was never given out. */
bool references_is_guess(struct worker *worker, fb_ref ref);
/* Counts and logs a guess; false after too many: guesses are not to be answered for a while. */
bool references_note_guess(struct worker *worker);

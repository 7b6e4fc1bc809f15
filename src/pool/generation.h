/* SPDX-License-Identifier: BSD-2-Clause */
/* A generation of workers, and its end. */
#pragma once

#include "pool/layout.h"

/* How long the next reload waits for draining workers to release their listeners. */
#define GENERATION_RELEASE_MS 5000

/* Takes a legal step. */
void generation_set_phase(struct generation *generation, enum generation_phase phase);
/* Tells its workers to finish their sessions. */
void generation_drain(struct generation *generation);
/* Tells its workers to end at once; those that do not are killed soon. */
void generation_close(struct generation *generation);
/* Bounds the generations that drain, their worker processes and the slots of these. */
void generation_bound(struct pool *pool);
/* Whether a worker of the generation accepts clients. */
bool generation_accepts(const struct generation *generation);
/* Destroys a generation that has no process left, with its configuration. */
void generation_destroy(struct generation *generation);

/* Whether a generation may start now: none is starting, max_generations allows it, and no draining
 * worker holds listeners, which would be in the way of the same ones, for as long as its
 * generation's timer runs: a worker that is stuck may hold none that matter. */
bool pool_may_start(const struct pool *pool);
/* Returns a generation of which a draining worker may hold listeners, each for a bounded time; or
 * NULL. */
const struct generation *pool_find_holder(const struct pool *pool);
/* Writes what a start waits for; returns for how many ms at most, 0: no bound is known. */
uint64_t pool_describe_wait(const struct pool *pool, char *text, size_t size);

/* SPDX-License-Identifier: BSD-2-Clause */
/* A generation of workers, and its end. */
#pragma once

#include "pool/layout.h"

/* How long the next reload waits for draining workers to release listeners. */
#define GENERATION_RELEASE_MS 5000

/* Takes a legal step. */
void generation_set_phase(struct generation *generation, enum generation_phase phase);
/* Tells the workers to finish their sessions. */
void generation_drain(struct generation *generation);
/* Tells the workers to end at once, or be killed soon. */
void generation_close(struct generation *generation);
/* Bounds draining generations, worker processes and slots. */
void generation_bound(struct pool *pool);
/* Whether a worker of the generation accepts clients. */
bool generation_accepts(const struct generation *generation);
/* Destroys a generation without processes, together with the configuration. */
void generation_destroy(struct generation *generation);
/* Whether a generation may start: none is starting, max_generations allows more, and no draining
 * worker holds listeners, while the release timer runs. */
bool pool_may_start(const struct pool *pool);
/* Returns a generation whose draining workers may hold listeners, for a bounded time; or NULL. */
const struct generation *pool_find_holder(const struct pool *pool);
/* Returns the ms until a deadline; 0: past, or none. */
uint64_t pool_ms_until(const struct pool *pool, uint64_t deadline);
/* Writes what a start waits for; returns for how many ms at most, 0: no bound is known. */
uint64_t pool_describe_wait(const struct pool *pool, char *text, size_t size);
/* Expiry of a timer that wakes the master to look for due work. */
void pool_wake_up(struct loop *loop, struct timer *timer);

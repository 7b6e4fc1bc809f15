/* SPDX-License-Identifier: BSD-2-Clause */
/* The replacement of the serving generation: transaction, probation, back-off. */
#pragma once

#include "pool/layout.h"

/* Commits or serves, once all workers of the starting generation have come far enough. */
void transaction_advance(struct generation *generation);
/* Makes the starting generation serve, and the generation before drain. */
void transaction_serve(struct generation *generation);
/* Takes the starting generation back after an emerg line; transaction_failed() is to follow. */
void transaction_withdraw(struct generation *generation, const char *why);
/* A start has failed: ends generations beside the serving generation, and calls ops->failed. */
void transaction_failed(struct pool *pool);
/* Calls transaction_withdraw() and transaction_failed(). */
void transaction_abort(struct generation *generation, const char *why);
/* Drains replaced generations, once the serving generation accepts and will not give way. */
void transaction_drain_replaced(struct pool *pool);
/* The daemon ends: a committed generation serves, any other start is taken back. */
void transaction_conclude(struct pool *pool);
/* Ends the probation, if any: gives up the generation before. */
void pool_probation_end(struct pool *pool);
/* Whether no worker of the serving generation has crashed since the commit. */
bool pool_probation_is_calm(const struct pool *pool);
/* Whether the configuration before is to start again, and does not yet. */
bool pool_probation_awaits_start(const struct pool *pool);
/* Whether the serving generation has given up addresses of the configuration before. */
bool pool_probation_must_bind(const struct pool *pool);
/* A worker waits for its replacement. */
void pool_backoff_note(struct generation *generation);
/* A worker was forked while all workers waited. */
void pool_backoff_watch(struct generation *generation);

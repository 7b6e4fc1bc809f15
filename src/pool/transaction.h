/* SPDX-License-Identifier: BSD-2-Clause */
/* The transaction by which a generation takes the place of another, its probation, and back-off. */
#pragma once

#include "pool/layout.h"

/* A worker of the starting generation has come further: the generation does when all have. */
void transaction_advance(struct generation *generation);
/* The starting generation serves, because its workers accept or none of them will come to, and the
 * generation before drains. */
void transaction_serve(struct generation *generation);
/* Takes the starting generation back after an emerg line; transaction_failed() is to follow. */
void transaction_withdraw(struct generation *generation, const char *why);
/* A start has failed: generations beside the one that serves end, and ops->failed is called. */
void transaction_failed(struct pool *pool);
/* Calls transaction_withdraw() and transaction_failed(). */
void transaction_abort(struct generation *generation, const char *why);
/* Drains what was replaced, once the generation that serves accepts, and will not give way. */
void transaction_drain_replaced(struct pool *pool);
/* The daemon ends: a committed generation becomes the serving one, any other start is taken
 * back. */
void transaction_conclude(struct pool *pool);

/* Ends the probation, if there is any: the generation before is not needed any more. */
void pool_probation_end(struct pool *pool);
/* Whether no worker of the generation that serves has crashed since its commit. */
bool pool_probation_is_calm(const struct pool *pool);
/* Whether the configuration before is to start again, and has not begun to. */
bool pool_probation_awaits_start(const struct pool *pool);
/* Whether the configuration before has addresses that the one that serves has given up. */
bool pool_probation_must_bind(const struct pool *pool);

/* A worker waits for its replacement. */
void pool_backoff_note(struct generation *generation);
/* A worker of a generation whose workers were all waiting was forked. */
void pool_backoff_watch(struct generation *generation);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The listening sockets of a configuration that takes the place of another: opened, committed,
 * taken back, or retired with the configuration that had them. Private to pool/. A socket that
 * both have is never closed on the way. */
#pragma once

#include "pool/pool.h"

/* Binds what the configuration listens on, taking over what is open; -1 after an emerg line,
 * with what was opened closed again. */
int listeners_open(struct pool *pool, struct cycle *cycle);
/* Makes all of them listen; -1 after an emerg line, with some listening. */
int listeners_commit(struct pool *pool, struct cycle *cycle);
/* Closes what listeners_open() has opened, up to `last` (NULL: all). */
void listeners_abandon(struct pool *pool, struct cycle *cycle, const struct listener *last);
/* After a commit that failed: abandons all, and gives those in force their options back. */
void listeners_restore(struct pool *pool, struct cycle *cycle);
/* Hands the sockets of the old configuration to the new one, and closes those that it dropped. */
void listeners_retire(struct pool *pool, struct cycle *old, struct cycle *new);

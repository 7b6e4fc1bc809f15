/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool forks, replaces, kills and ends workers, and listens to them. Commands, reloads,
 * control sockets and pid files are unknown here: `struct pool_ops` tells the owner of events.
 * Nothing from a worker is asserted on. */
#pragma once

#include "pool/layout.h"

/* Takes the members up to adopted_zones; the memory of tickets becomes the pool's. */
void pool_init(struct pool *pool, const struct pool *from);
/* Destroys all generations; no worker is left. */
void pool_done(struct pool *pool);
/* Asserts what must hold of the whole structure between two wake-ups of the master. */
void pool_check(const struct pool *pool);
bool pool_has_workers(const struct pool *pool);
/* Counts the workers for clients, without helpers, of draining and closing generations, or of the
 * rest without the starting one. */
unsigned pool_count_workers(const struct pool *pool, bool draining);
/* Tells the serving generation's workers to drain; none is replaced. */
void pool_drain(struct pool *pool);
/* A graceful end is taken back, so that a generation may start, or goes on again. */
void pool_set_ending(struct pool *pool, bool ending);
/* After transaction_conclude(): all workers end, after the end of sessions or at once. */
void pool_end(struct pool *pool, bool gracefully);
/* Closes the listeners, and unlinks paths without a further listener. */
void pool_close_listeners(struct pool *pool);
/* Reopens log files, and passes the descriptors to workers. */
void pool_reopen_logs(struct pool *pool);
/* Goes on with a way back to the configuration before, repairs broken logs and writes what was held
 * back; to be called in each wake-up of the master, after commands were carried out. */
void pool_advance(struct pool *pool);

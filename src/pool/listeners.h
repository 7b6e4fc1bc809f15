/* SPDX-License-Identifier: BSD-2-Clause */
/* Repair of listeners and of the accept mutex, and rescans. */
#pragma once

#include "pool/layout.h"

/* Makes every accepting worker but `asker`, which wants it, rescan its listeners once, soon;
 * then the host is told as well. NULL: the host asks. */
void pool_rescan(struct pool *pool, const struct pool_worker *asker);
/* Tells every worker, soon, that names have new addresses. */
void pool_rescan_names(struct pool *pool);
/* The first generation serves: reads the options of sockets that no worker has touched. */
void pool_read_untouched(struct pool *pool);
/* Makes broken listeners listen again: now; soon; soon, as a worker says that the one of a number
 * is broken; soon, with the options of all put back, as a worker that accepted has died, or after
 * a reload. */
void pool_mend_listeners(struct pool *pool);
void pool_look_at_listeners(struct pool *pool);
void pool_note_broken_listener(struct pool_worker *worker, uint32_t number);
void pool_restore_listeners(struct pool *pool);
/* A worker says that the accept mutex had an owner that cannot be. */
void pool_note_damaged_mutex(struct pool_worker *worker);

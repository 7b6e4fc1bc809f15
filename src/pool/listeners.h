/* SPDX-License-Identifier: BSD-2-Clause */
/* Repair of listeners and of the accept mutex, and rescans. */
#pragma once

#include "pool/layout.h"

/* Makes all accepting workers but `asker` rescan soon, and tells the host, unless NULL. */
void pool_rescan(struct pool *pool, const struct pool_worker *asker);
/* Tells every worker, soon, of new addresses of names. */
void pool_rescan_names(struct pool *pool);
/* The first generation serves: reads options of untouched sockets. */
void pool_read_untouched(struct pool *pool);
/* Repairs broken listeners: now; soon; soon, with the options of all restored, after the death of
 * an accepting worker or a reload. */
void pool_mend_listeners(struct pool *pool);
void pool_look_at_listeners(struct pool *pool);
void pool_restore_listeners(struct pool *pool);
/* A worker reports an impossible owner of the accept mutex. */
void pool_note_damaged_mutex(struct pool_worker *worker);

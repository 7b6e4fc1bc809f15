/* SPDX-License-Identifier: BSD-2-Clause */
/* Keepers, as the master sees them: helpers of a worker each. */
#pragma once

#include "pool/layout.h"

/* Connects a worker and its keeper, if both have a process, by a new socket pair; the pair before
 * ends. Without descriptors the keeper is killed, to be replaced when there are some. */
void pool_keepers_link(struct pool_worker *worker);
/* Watches the files of the generation's configuration from now on, and tells its keepers when files
 * may have changed, until the generation is replaced. */
void pool_keepers_watch(struct generation *generation);
/* Takes events of the watched files of all generations. */
void pool_keepers_look(struct pool *pool);
void pool_keepers_unwatch(struct generation *generation);
/* A keeper asks for a file in range; false: without the reply to its last request. */
bool pool_keepers_want_file(struct pool_worker *worker, uint32_t file);

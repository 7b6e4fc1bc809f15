/* SPDX-License-Identifier: BSD-2-Clause */
/* The start of a generation. */
#pragma once

#include "pool/layout.h"

/* Opens listeners and zones of a configuration, taking over those in force, and forks its workers.
 * Takes `cycle` and `opened` (descriptors of modules). Returns -1 after an emerg line, with nothing
 * left but ending workers. The operations tell of later outcomes. */
int pool_start_generation(struct pool *pool, struct cycle *cycle, struct descriptors *opened);
/* Starts the configuration before again, if due, once no draining worker is in its way. */
void pool_fall_back_advance(struct pool *pool);
/* Undoes pool_drain() by a new generation, unless a starting one has the listeners already. */
void pool_revive(struct pool *pool);

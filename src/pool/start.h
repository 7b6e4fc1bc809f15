/* SPDX-License-Identifier: BSD-2-Clause */
/* The start of a generation. */
#pragma once

#include "pool/layout.h"

/* Opens listeners and zones of a configuration, taking over those in force, and forks its
 * workers. Takes `cycle` and `opened` (descriptors that modules opened meanwhile). Returns -1
 * after an emerg line, with nothing left but workers that are being ended. The operations tell
 * of later outcomes. */
int pool_start_generation(struct pool *pool, struct cycle *cycle, struct descriptors *opened);
/* Starts the configuration before again, if due, once no draining worker holds listeners in its
 * way. */
void pool_fall_back_advance(struct pool *pool);
/* Undoes pool_drain(): a new generation serves with the same configuration and listeners, unless a
 * starting generation has the listeners already. */
void pool_revive(struct pool *pool);

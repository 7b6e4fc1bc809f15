/* SPDX-License-Identifier: BSD-2-Clause */
/* The start of a generation. */
#pragma once

#include "pool/layout.h"

/* Opens listeners and zones of this configuration, taking over those in force, and forks its
 * workers. Takes `cycle` and `opened` (the descriptors that modules opened while it was read).
 * Returns -1 after an emerg line: nothing is left of it, but for workers that were forked already
 * and are being ended. The operations tell of later outcomes. */
int pool_start_generation(struct pool *pool, struct cycle *cycle, struct descriptors *opened);
/* Starts the configuration before again, if it is to be, as soon as no draining worker holds
 * listeners that are in the way. */
void pool_fall_back_advance(struct pool *pool);
/* Undoes pool_drain(): a new generation serves with the same configuration and listeners, unless
 * one that starts has them already. */
void pool_revive(struct pool *pool);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Exits of workers, and workers that are left to a child of the master's. */
#pragma once

#include "pool/layout.h"

/* Names of causes in the status; NULL: not counted there. */
extern const char *const pool_death_names[POOL_DEATHS];

/* Reaps all children that have exited, and replaces workers as their exit deserves. */
void pool_reap(struct pool *pool);

/* Makes it possible that a child takes this pool over, which ends; -1 with errno. To be undone, if
 * there is no child. */
int pool_leave_begin(struct pool *pool);
void pool_leave_undo(struct pool *pool);
/* In the child: the workers' ends are looked for from now on, and their messages wake us; -1 with
 * errno if some do not. */
int pool_take_over(struct pool *pool);

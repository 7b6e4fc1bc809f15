/* SPDX-License-Identifier: BSD-2-Clause */
/* Exits of workers, and workers left to a child of the master's. */
#pragma once

#include "pool/layout.h"

/* Names of causes in the status; NULL: not counted there. */
extern const char *const pool_death_names[POOL_DEATHS];

/* Reaps children, and replaces workers. */
void pool_reap(struct pool *pool);

/* Lets a child take an ending pool over; -1 with errno. Undone when there is no child. */
int pool_leave_begin(struct pool *pool);
void pool_leave_undo(struct pool *pool);
/* In the child: polls for exits of workers, and wakes for their messages; -1 with errno if not
 * for all. */
int pool_take_over(struct pool *pool);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Exits of workers, and workers left to a child of the master's. */
#pragma once

#include "pool/layout.h"

struct pool_death_row {
    const char *name; /* in the status; NULL: not counted there */
    bool is_crash;
    const char *killed_because; /* by the master; NULL: not killed */
};

extern const struct pool_death_row pool_deaths[POOL_DEATHS];

/* Reaps children, and replaces workers. */
void pool_reap(struct pool *pool);
/* Lets a child take an ending pool over; -1 with errno. Undone when there is no child. */
int pool_leave_begin(struct pool *pool);
void pool_leave_undo(struct pool *pool);
/* In the child: polls for exits, and wakes for messages; -1 with errno if not of all workers. */
int pool_take_over(struct pool *pool);

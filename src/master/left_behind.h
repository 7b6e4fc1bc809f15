/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers that another master process has left behind, because it was killed: they let their
 * sessions end. This one reports them at its start and in the status, and ends them with itself
 * when it is told to end at once. Nothing is kept about them: each time they are looked for. */
#pragma once

#include "base/log.h"
#include "control/status.h"
#include "event/timer.h"
#include "process/worker_list.h"

struct left_behind {
    const struct worker_list *list; /* the others are beside it */
    struct log *log;
    struct timers *timers;
    const struct clock *clock;
    struct timer look;  /* when to see whether they have ended */
    uint64_t killed_at; /* when those that have not are killed, monotonic ms; 0: not told to end */
};

void left_behind_init(struct left_behind *left, const struct left_behind *from);
/* Logs how many there are and their pids, if any, and removes what the ended ones have left. */
void left_behind_report(const struct left_behind *left);
/* Tells them to end at once: those that have not soon are killed. Until then killed_at is set. */
void left_behind_end(struct left_behind *left);
/* Fills in the status. */
void left_behind_status(const struct left_behind *left, struct control_status *status);

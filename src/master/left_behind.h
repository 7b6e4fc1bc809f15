/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers left behind by a killed master process, until their sessions have ended. Reported at
 * the start and in the status, and ended by a fast shutdown. No record of them is kept: each
 * look reads the lists. */
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
    uint64_t killed_at; /* when the rest is killed, monotonic ms; 0: no shutdown */
};

void left_behind_init(struct left_behind *left, const struct left_behind *from);
/* Logs number and pids, if any, and removes lists of ended workers. */
void left_behind_report(const struct left_behind *left);
/* Ends the workers, by SIGINT and soon by SIGKILL. Until then killed_at is set. */
void left_behind_end(struct left_behind *left);
/* Fills in the status. */
void left_behind_status(const struct left_behind *left, struct control_status *status);

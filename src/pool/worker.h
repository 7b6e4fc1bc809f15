/* SPDX-License-Identifier: BSD-2-Clause */
/* The master's record of a worker. */
#pragma once

#include "pool/layout.h"

/* Returns its name in log lines. */
static inline const char *pool_worker_title(const struct pool_worker *worker)
{
    return worker->task == TASK_ASK ? "resolver process" : "worker process";
}
/* Takes a legal step, and sets the deadline of the next one; the last step gives up what the record
 * has of a process that has ended. */
void pool_worker_set_phase(struct pool_worker *worker, enum pool_worker_phase phase);
/* Sets a deadline for this reason, unless the worker has an earlier one, the reason's time is
 * unlimited, or it is that of the start and there is any. POOL_KILL_NONE: the worker has come
 * further in its start, whose deadline is dropped; any other stays, and a worker that drains gets
 * that of its drain. */
void pool_deadline_set(struct pool_worker *worker, enum pool_kill why);
/* Schedules a new process after this time. */
void pool_worker_respawn_in(struct pool_worker *worker, uint64_t ms);

enum pool_order {
    POOL_ORDER_ACCEPT, /* to accept clients, within worker_start_timeout */
    POOL_ORDER_DRAIN,  /* to finish its sessions, in worker_shutdown_timeout and a second */
    POOL_ORDER_CLOSE,  /* to end at once, which it has two seconds for */
};

/* Tells the worker what to do, and sets the deadline. */
void pool_worker_order(struct pool_worker *worker, enum pool_order order);
/* Kills a worker that has broken this rule of the channel, after an alert line. */
void pool_worker_break_rule(struct pool_worker *worker, const char *rule);
/* Closes the inbox, if there is one: the next request for it makes a new one. */
void pool_worker_drop_inbox(struct pool_worker *worker);
/* Returns the record of the worker with this pid, or of this incarnation, which may be invented; or
 * NULL. */
struct pool_worker *pool_find_worker(const struct pool *pool, pid_t pid);
struct pool_worker *pool_worker_of_incarnation(const struct pool *pool, uint32_t incarnation);
/* Looks at the heartbeats of the generation whose timer `watch` this is, and sets the timer
 * again. */
void pool_watchdog_expired(struct loop *loop, struct timer *timer);

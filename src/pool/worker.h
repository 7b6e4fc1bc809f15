/* SPDX-License-Identifier: BSD-2-Clause */
/* The master's record of a worker. */
#pragma once

#include "pool/layout.h"

/* Returns its name in log lines. */
const char *pool_worker_title(const struct pool_worker *worker);
/* Returns the configuration with the protocols that the process runs; NULL: a helper's. */
const struct cycle *pool_worker_protocols(const struct pool_worker *worker);
/* Takes a legal step and sets the next deadline. EMPTY gives up all of an ended process. */
void pool_worker_set_phase(struct pool_worker *worker, enum pool_worker_phase phase);
/* Sets a deadline, unless the worker has an earlier one, the time is unlimited, or
 * POOL_KILL_START_LATE meets any deadline. POOL_KILL_NONE drops the deadline of a start, in
 * favour of the drain's. */
void pool_deadline_set(struct pool_worker *worker, enum pool_kill why);
/* Schedules a new process after this time. */
void pool_worker_respawn_in(struct pool_worker *worker, uint64_t ms);
/* Orders the worker to accept clients, within worker_start_timeout. */
void pool_worker_accept(struct pool_worker *worker);
/* Orders the worker to finish its sessions, in worker_shutdown_timeout and a second, or to end at
 * once, in two seconds. */
void pool_worker_end(struct pool_worker *worker, bool gracefully);
/* Kills a worker for a broken rule of the channel, after an alert line. */
void pool_worker_break_rule(struct pool_worker *worker, const char *rule);
/* Closes the inbox, if any: the next request makes a new inbox. */
void pool_worker_drop_inbox(struct pool_worker *worker);
/* Returns the record of a pid, or of a perhaps invented incarnation; or NULL. */
struct pool_worker *pool_find_worker(const struct pool *pool, pid_t pid);
struct pool_worker *pool_worker_of_incarnation(const struct pool *pool, uint32_t incarnation);
/* Looks at the heartbeats of the timer's generation, and sets the timer again. */
void pool_watchdog_expired(struct loop *loop, struct timer *timer);

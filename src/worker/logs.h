/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's log: its limit of lines, and its repair. A worker opens no log: a log that has lost
 * its receiver is reported to the master, which hands over a new descriptor. */
#pragma once

#include "base/compiler.h"

struct channel_message;
struct worker;

/* Limits lines from now on as error_log_rate_limit says. */
void worker_limit_log(struct worker *worker);
/* Logs a callback that took longer than `stall_threshold`, and was no connection's. */
void worker_log_stall(struct worker *worker) COLD;
/* Reports broken logs to the master, and sets the timer by which held-back lines are summed up. */
void worker_tend_log(struct worker *worker);
/* Replaces a log's descriptor by the message's, which then holds the old one. */
void worker_log_reopened(struct worker *worker, struct channel_message *message);

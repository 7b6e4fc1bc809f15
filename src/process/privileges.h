/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives up a worker's privileges: limits, priority, processors, user and group, working directory.
 * The user is changed last, and never changed back. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* Confines this process as worker number `index`, or as a helper, with a number beyond
 * worker_processes, in the order above; -1 after an emerg line where the worker must not go on. */
int process_confine(const struct cycle *cycle, unsigned index, struct log *log);
/* Sets the limits alone, for a single process, which keeps its user. */
void process_limit(const struct cycle *cycle, struct log *log);

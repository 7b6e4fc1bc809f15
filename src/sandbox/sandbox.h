/* SPDX-License-Identifier: BSD-2-Clause */
/* The sandbox of workers: limits an attacker with control of a worker, by no_new_privs, Landlock
 * (paths, ports, signals) and a filter of system calls, from the end of a worker's start on. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* Checks that workers can have the configured sandbox; -1 after an emerg line. */
int sandbox_check(const struct cycle *cycle, struct log *log);
/* Checks the same, logs missing parts and allowed needs, and makes the filter of system calls. */
int sandbox_prepare(struct cycle *cycle, struct log *log);
/* Narrows the configuration of a helper to asking for names: `strict` where the system can. */
void sandbox_narrow(struct cycle *cycle);
/* Narrows the configuration of a keeper likewise, to the calls of shaking hands. */
void sandbox_narrow_keeper(struct cycle *cycle);
/* Enters the sandbox, for good; -1 after an emerg line: the process must not go on. */
int sandbox_enter(const struct cycle *cycle, struct log *log);

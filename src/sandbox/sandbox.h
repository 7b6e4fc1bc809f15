/* SPDX-License-Identifier: BSD-2-Clause */
/* The sandbox of workers: it limits what an attacker can do who controls a worker. It is made
 * of no_new_privs, Landlock (paths, ports, signals) and a filter of system calls. Each worker
 * enters it at the end of its start, and can never leave it. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* Checks that workers can have the sandbox that the configuration demands; -1 after an emerg
 * line. */
int sandbox_check(const struct cycle *cycle, struct log *log);
/* Checks the same, logs which parts of the sandbox are missing and what it allows because protocols
 * need it, and makes the filter of system calls. */
int sandbox_prepare(struct cycle *cycle, struct log *log);
/* A helper, before it enters: narrows the configuration, which is this process's alone, to what it
 * needs to ask for names. Where the system can do it, that is `strict`. */
void sandbox_narrow(struct cycle *cycle);
/* Enters it, for good and with all that this process starts from now on; -1 after an emerg line
 * where it must not go on. */
int sandbox_enter(const struct cycle *cycle, struct log *log);

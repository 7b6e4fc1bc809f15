/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of a start: inheritance, the configuration, the background, logs, environment, shared
 * memory, signals, the lock; then a master or a single process takes over the prepared state.
 * Failures before the takeover are undone here. */
#pragma once

#include "base/log.h"
#include "pidfile/pidfile.h"
#include "process/descriptors.h"
#include "settings/cycle.h"
#include "shm/shared.h"
#include "upgrade/exec_state.h"

#include <stdbool.h>

struct start {
    struct cycle *cycle;                 /* loaded, with open logs */
    struct descriptors opened;           /* by modules while the configuration was read */
    const struct cycle_options *options; /* for reloads */
    struct shared *shared;
    const struct binary *binary; /* for upgrades */
    struct exec_state inheritance;
    struct pidfile pidfile;       /* locked; its path is allocated */
    int background;               /* a pipe to the process awaiting our service, or -1 */
    struct log log;               /* until we serve */
    struct log_failures failures; /* reason that has kept us from that */
};

/* Runs the daemon until the end; returns the exit code. `log` writes to standard error. */
int start_daemon(
    struct cycle_options *options, const struct binary *binary, struct log *log, char **argv);
/* Checks the configuration for -t, with `dump` shows it (-T), and returns the exit code. */
int start_test(const struct cycle_options *options, bool quiet, bool dump, struct log *log);

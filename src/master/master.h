/* SPDX-License-Identifier: BSD-2-Clause */
/* The master process: turns signals and requests into commands, and puts them in order. The parts
 * do the work with separate states, and report through operations. The only sleep is sigsuspend().
 * A function takes the needed part, not the whole. */
#pragma once

#include "base/check.h"
#include "control/control.h"
#include "control/endpoints.h"
#include "master/commands.h"
#include "master/left_behind.h"
#include "master/reload.h"
#include "master/service_manager.h"
#include "master/start.h"
#include "pool/pool.h"
#include "upgrade/upgrade.h"

#define MASTER_KIND KIND('M', 'a', 's', 't')

struct master {
    unsigned kind;
    struct log log;
    _Atomic uint64_t lost; /* log lines of the master process */
    struct clock clock;    /* read at the latest wake-up */
    struct timers timers;  /* deadlines of all parts */
    struct alarm alarm;    /* wakes for the earliest of them */
    struct clock started;
    struct shared *shared;
    const struct cycle_options *options;
    struct pool pool;
    struct reload reload;
    struct service_manager manager;
    struct upgrade upgrade;
    const struct cycle *accepted; /* configuration in force, as announced to protocols; or NULL */
    struct control control;
    struct endpoints endpoints;
    struct worker_list list;  /* our workers, for the next master process */
    struct left_behind left;  /* workers of one before us */
    struct diag *diag;        /* diagnostics of a reload; NULL: there was no memory */
    struct commands commands; /* given, and not carried out yet */
    enum master_phase phase;
    bool termed;    /* a SIGTERM has come */
    bool leaves;    /* the end is left to a child, once no worker holds listeners */
    bool is_left;   /* the process is that child */
    bool failed;    /* the daemon could not begin to serve */
    int background; /* a pipe to the process awaiting our service, or -1 */
};

/* Runs until the end, with the role's signals installed; returns the exit code. */
int master_main(struct start *start);

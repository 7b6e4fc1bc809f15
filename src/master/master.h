/* SPDX-License-Identifier: BSD-2-Clause */
/* The master process: it turns signals and requests into commands, and puts them in order. Its parts do
 * the work, each with state of its own, and tell it what came of it through operations. Its only sleep
 * is sigsuspend(). Functions that need a part take that part, not the whole. */
#pragma once

#include "base/clock.h"
#include "event/timer.h"
#include "master/control.h"
#include "master/phase.h"
#include "master/reload.h"
#include "master/service_manager.h"
#include "master/start.h"
#include "master/upgrade.h"
#include "pool/pool.h"
#include "process/pidfile.h"

#define MASTER_KIND KIND('M', 'a', 's', 't')

struct master {
    unsigned kind;
    struct fb_log log;
    struct fb_clock clock; /* as of the latest wake-up */
    struct timers timers;  /* of all parts; SIGALRM wakes for the earliest */
    struct fb_clock started;
    struct fb_shared *shared;
    const struct fb_cycle_options *options;
    struct pool pool;
    struct reload reload;
    struct service_manager manager;
    struct fb_upgrade upgrade;
    struct fb_control control;
    struct fb_control next_control; /* of a reload, until it is in force; without clients */
    bool requested[FB_ORDERS];      /* by the control socket's clients */
    struct fb_told *told;           /* diagnostics of a reload; NULL: there was no memory */
    struct fb_result result;        /* of the latest reload */
    struct fb_pidfile pidfile;
    struct fb_pidfile next_pidfile; /* of a reload that names another; not locked otherwise */
    struct fb_timer others_due;     /* deadlines of control and upgrade */
    enum master_phase phase;
    pid_t sender;   /* of the signal that is handled; 0: not known, or no signal */
    bool termed;    /* a SIGTERM has come */
    bool failed;    /* the daemon could not begin to serve */
    int background; /* a pipe to the process that waits until we serve, or -1 */
};

/* Runs until the daemon is told to end, and returns the exit code. The role's signals are installed. */
int master_main(struct start *start);
/* Whether this command was given, by a signal or by a client of the control socket; it is taken. */
bool master_take_command(struct master *master, enum fb_order command);
/* Begins to end the daemon, or goes on to end it at once. */
void master_end(struct master *master, bool gracefully);
/* The pool's operations, for a `struct master` as host (pool_host.c). */
extern const struct pool_ops master_pool_ops;

/* Reloads (reload.c) */

/* Begins a reload if one was asked for and may begin now. One begins after the other: a command that
 * comes meanwhile waits. */
void reload_begin(struct master *master);
/* The process that checks the configuration has exited with this status of waitpid(). */
void reload_checked(struct master *master, int status);
/* The reload has failed, which was logged: the configuration before stays in force. */
void reload_fail(struct master *master);
/* The daemon ends: a check that is under way is of no interest any more. */
void reload_cancel(struct master *master);

/* Pid file and control socket (publish.c) */

/* Makes them where this configuration wants them, if they are not there yet; -1 after an emerg line. */
int master_prepare_names(struct master *master, const struct fb_core_settings *core);
/* Moves them to where the serving generation has them. Where that fails: -1 after an emerg line at the
 * first start, else they stay where they are. */
int master_publish(struct master *master, bool first);
/* Removes what a reload has prepared. */
void master_undo_names(struct master *master);

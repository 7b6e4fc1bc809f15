/* SPDX-License-Identifier: BSD-2-Clause */
/* The check of a configuration by a process of its own: a configuration may load foreign code,
 * which may crash or hang, so a child process reads it first and loads its modules. The child has
 * no descriptors but those of the log, changes nothing outside of itself, and never outlives its
 * parent. The caller reaps it and enforces the deadline. */
#pragma once

#include "base/log.h"
#include "settings/cycle.h"

/* How long a check may take. */
#define CONFIG_CHECK_MS 60000

struct config_check {
    /* set before it begins: whether names of servers are asked for, and those that are in force, or
     * NULL (name_check.h) */
    bool asks;
    const struct zone *known;
    pid_t pid; /* the child's; 0: no check is under way */
    bool late; /* the child was killed because its time was over */
    struct check_progress
        *progress;              /* shared with the child: whose code runs; NULL without a child */
    struct answers *answers;    /* by name services, kept until config_check_done() */
    struct config_child *child; /* memory that the child was given; NULL without a child */
};

/* Forks the child, which shows mistakes in the log, and excerpts of the file to `excerpts` (-1:
 * does not). Returns -1 after an emerg line. */
int config_check_begin(
    struct config_check *check, const struct cycle_options *options, struct log *log, int excerpts);
/* Kills the child because the check takes too long; the caller reaps it as usual. */
void config_check_kill(struct config_check *check);
/* Kills and reaps the child, if there is one: its result is not needed any more. */
void config_check_cancel(struct config_check *check);
/* Ends a check whose child was reaped with this status of waitpid(). Returns 0 when the
 * configuration has no mistakes and its code did no harm; else -1, after the lines that
 * cycle_load() would have shown, or one that names the module or protocol at fault. The answers
 * stay, for the reading that follows. */
int config_check_end(struct config_check *check, int status, const char *conf, struct log *log);
/* Gives up the answers, if there are any. */
void config_check_done(struct config_check *check);

/* Begins a check and waits for its end. Returns what config_check_end() does. */
int config_check_run(
    struct config_check *check, const struct cycle_options *options, struct log *log, int excerpts);

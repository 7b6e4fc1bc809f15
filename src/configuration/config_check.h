/* SPDX-License-Identifier: BSD-2-Clause */
/* The check of a configuration by a process of its own: a configuration may load foreign code,
 * which may crash or hang, so a child process reads the configuration first and loads the modules.
 * The child has no descriptors but the log's, changes nothing outside of itself, and never outlives
 * its parent. The caller reaps the child and enforces the deadline. */
#pragma once

#include "base/log.h"
#include "process/descriptors.h"
#include "settings/cycle.h"

struct config_check {
    /* set before the begin: whether to ask for names of servers, and the zone of the addresses in
     * force, used for its descriptor alone; NULL: no zone, or another process's */
    bool asks;
    const struct zone *known;
    pid_t pid;                       /* the child's; 0: no check is under way */
    bool late;                       /* the child was killed at its deadline */
    struct check_progress *progress; /* shared: owner of the child's running code; NULL: no child */
    struct answers *answers;         /* by name services, kept until config_check_done() */

    /* input of the child */
    struct cycle_options options;
    struct log *log;
    int excerpts;
    pid_t parent;
    struct descriptors allowed; /* descriptors that the child keeps */
};

/* Forks the child; excerpts go to `excerpts` (-1: nowhere). Returns -1 after an emerg line. */
int config_check_begin(
    struct config_check *check, const struct cycle_options *options, struct log *log, int excerpts);
/* Kills the child because the check takes too long; the caller reaps it as usual. */
void config_check_kill(struct config_check *check);
/* Kills and reaps the child, if any: the result is not needed any more. */
void config_check_cancel(struct config_check *check);
/* Ends a check by the child's status of waitpid(). Returns 0 if the configuration has no mistakes
 * and its code did no harm; else -1, after the lines of cycle_load(), or a line that names the
 * module or protocol at fault. The answers stay, for the following reading. */
int config_check_end(struct config_check *check, int status, const char *conf, struct log *log);
/* Gives up the answers, if there are any. */
void config_check_done(struct config_check *check);
/* Begins a check and waits for the end. Returns as config_check_end() does. */
int config_check_run(
    struct config_check *check, const struct cycle_options *options, struct log *log, int excerpts);
/* Asks for all names of servers, for a second at most, and warns (config_check_names.c). */
void config_check_names(
    const struct cycle *cycle, const struct zone *known, struct log *log, int excerpts);
/* Warns, for -t, of addresses held by other processes, so that a start could not bind them
 * (config_check_addresses.c). Nothing is bound and no socket is made: the kernel's tables are read.
 * Addresses of a daemon with our pid file are kept at a reload. */
void config_check_addresses(const struct cycle *cycle, struct log *log, int excerpts);

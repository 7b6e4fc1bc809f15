/* SPDX-License-Identifier: BSD-2-Clause */
/* The logs of a cycle: its files, and its sockets to syslog servers and the journal. Workers
 * inherit them and open none by its name: a socket that has lost its receiver is connected again by
 * the master, which connects it for all processes that share it. A log that fails, or whose reader
 * stalls, loses lines and never stops a process. */
#pragma once

#include "base/log.h"
#include "base/log_limit.h"
#include "process/log_quota.h"
#include "settings/cycle.h"

#include <sys/types.h>

#define LOGS_REPAIR_MS 1000

/* The standard error of a worker, by a pipe that neither end waits for: the panic of a library, the
 * assertion of a module become log lines of the master's. */
struct output {
    int fd;     /* the master's end; -1: there is none */
    unsigned n; /* bytes of a line whose end has not come */
    char text[512];
};

/* Opens standard output and error again, so that nothing that we or a library write there waits for
 * a reader; their flags stay as whoever started us has them. Where that fails, the target, which is
 * standard error's, is written as its kind allows. To be called once, before the user changes. */
void logs_open_standard(struct log_target *standard_error);
/* Opens all logs; -1 after an emerg line, with those that were opened closed again. A syslog server
 * that cannot be reached is an alert, and a log whose reader may be waited for a warning. */
int logs_open(struct core_settings *core, struct log *log);
/* Gives a worker's process flags of its own for each file: what it does to them, to O_APPEND above
 * all, is not done to others'. Its count of lost lines begins. To be called before the user
 * changes. */
void logs_separate(struct core_settings *core);
/* A worker: leads its standard error, where that is /dev/null, to a file of the main context that
 * takes text, or else to `output`, unless that is -1. */
void logs_lead_output(const struct core_settings *core, int output);
/* Gives the target another descriptor, to which standard error is led as it was to the old one.
 * Returns the old one. */
int logs_exchange(struct log_target *target, int fd);
/* Opens every file again by its name, and connects every socket again. Where that fails, the log
 * stays as it was, after an alert. */
void logs_reopen(struct core_settings *core, struct log *log);
/* Connects broken logs again. To be called once in LOGS_REPAIR_MS at most. */
void logs_repair(struct core_settings *core, struct log *log);
/* Makes `log` write to these logs from now on, with their flood limit, which is kept in `limit`.
 * What it has held back is written before; lines that it has lost are still counted. */
void logs_put_in_force(const struct core_settings *core, struct log *log, struct log_limit *limit);
/* Closes all but standard error. */
void logs_close(struct core_settings *core);
/* Returns which standard descriptors the logs, which are open, lead to, a bit each: by "stderr", or
 * by a path such as /dev/stdout, which is opened again at a signal. */
unsigned logs_standard(const struct core_settings *core);
/* Whether standard error is one of the main context's. */
bool logs_main_uses_stderr(const struct core_settings *core);

/* Whether the target is broken. If so, it counts as working until the next line is lost. */
bool logs_take_broken(struct log_target *target);

/* Makes a pipe for a worker that is about to be forked, unless a log of the main context is
 * standard error, or a file that takes text; *theirs
 * is the worker's end, or -1. NULL, or the call that has failed, with errno. */
const char *logs_output_open(struct output *output, const struct core_settings *core, int *theirs);
/* Logs what this process has written, all of it when it has died; true: there may be more. */
bool logs_output_read(struct output *output, struct log_quota *lines, pid_t pid, bool all);
/* Makes it wake this process, which goes on as the master; -1 with errno. */
int logs_output_take_over(const struct output *output);
void logs_output_close(struct output *output, struct log_quota *lines, pid_t pid);

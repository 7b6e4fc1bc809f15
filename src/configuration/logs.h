/* SPDX-License-Identifier: BSD-2-Clause */
/* The logs of a cycle: files, and sockets to syslog servers and the journal. Workers inherit them
 * and open none by name: the master connects a broken socket again, for all processes. A log that
 * fails, or whose reader stalls, loses lines and never stops a process. */
#pragma once

#include "base/log.h"
#include "base/token_bucket.h"
#include "event/timer.h"
#include "settings/cycle.h"

#include <sys/types.h>

#define LOGS_REPAIR_MS 1000
#define LOGS_FLUSH_MS 50
/* How long a process that is about to end waits for a connection to a syslog server. */
#define LOGS_FINISH_MS 1000

/* Opens standard output and error again, so that nothing that we or a library write there waits for
 * a reader; the flags of the inherited descriptors stay. `standard_error` is written as its kind
 * allows. Called once, before the user changes. */
void logs_open_standard(struct log_target *standard_error);
/* Opens all logs; -1 after an emerg line, with all closed again. An unreachable syslog server is an
 * alert, and a log whose reader may be waited for a warning. */
int logs_open(struct core_settings *core, struct log *log);
/* Gives a worker its own file flags, counts of lost lines, and connections, before the user
 * changes. `serves`: it writes to all logs, and not mostly to none. */
void logs_separate(struct core_settings *core, bool serves);
/* In a worker: leads standard error from /dev/null to a text file of main, or to `output`. */
void logs_lead_output(const struct core_settings *core, int output);
/* Replaces the target's descriptor, and standard error if led there. Returns the old one. */
int logs_exchange(struct log_target *target, int fd);
/* Opens every file and connects every socket again. A log that fails stays, after an alert. */
void logs_reopen(struct core_settings *core, struct log *log);
/* Connects broken logs again. Called once in LOGS_REPAIR_MS at most. */
void logs_repair(struct core_settings *core, struct log *log);
/* Sends lines that wait for connections, called once in LOGS_FLUSH_MS while log->waiting, which is
 * set again. */
void logs_flush(struct core_settings *core, struct log *log);
/* Sends, in a short-lived process, lines that wait for connections of the log's own targets. */
void logs_finish(const struct log *log);
/* In an ending process: counts waiting lines as lost. */
void logs_drop_waiting(struct core_settings *core, struct log *log);
/* Makes `log` write to these logs from now on. The flood limit is kept in `limit`. Suppressed lines
 * are reported before; lost lines are still counted. */
void logs_put_in_force(const struct core_settings *core, struct log *log, struct log_limit *limit);
/* Closes all but standard error. */
void logs_close(struct core_settings *core);
/* Returns the standard descriptors written by the open logs, a bit each: by "stderr", or by a path
 * such as /dev/stdout, reopened by a signal. */
unsigned logs_standard(const struct core_settings *core);
/* Whether standard error is a log of the main context. */
bool logs_main_uses_stderr(const struct core_settings *core);
/* Whether the target is broken, of which a connection is logged once; it counts as working until
 * the next lost line. */
bool logs_take_broken(struct log_target *target, struct log *log);

/* A quota of log lines about a subject, beyond the flood limit: a burst and some lines a second,
 * whatever their level. Held back lines are counted, and the count is logged later. */
struct log_quota {
    struct log *log;
    struct timers *timers;
    struct timer due; /* for the report of held back lines */
    struct token_bucket bucket;
    uint32_t held; /* lines not written, and not reported */
    char subject[48];
};

/* Log and timers outlive the quota. The subject is formatted: "worker 0 of generation 1". */
void log_quota_init(struct log_quota *quota, struct log *log, struct timers *timers,
    const char *subject, ...) PRINTF_FORMAT(4, 5);
/* Reports held back lines, and ends. */
void log_quota_done(struct log_quota *quota);
/* Writes a line, or holds it back. */
void log_quota_write(struct log_quota *quota, enum log_level level, int error, const char *format,
    ...) PRINTF_FORMAT(4, 5);
/* Implements log_event(): the event is noted in any case. */
#define log_quota_event(quota, kind, level, error, ...)                                            \
    do {                                                                                           \
        event_log_note((quota)->log->event_log, (kind), __VA_ARGS__);                              \
        log_quota_write((quota), (level), (error), __VA_ARGS__);                                   \
    } while (0)

/* The standard error of a worker, by a pipe that neither end waits for: the panic of a library and
 * the assertion of a module become log lines of the master. */
struct output {
    int fd;     /* the master's end; -1: there is none */
    unsigned n; /* bytes of a line without its end */
    char text[512];
};

/* Makes a pipe for a new worker, unless main has standard error or a text file; *theirs is the
 * worker's end, or -1. NULL, or the call that has failed, with errno. */
const char *logs_output_open(struct output *output, const struct core_settings *core, int *theirs);
/* Logs the process's output, all of it after a death; true: there may be more. */
bool logs_output_read(struct output *output, struct log_quota *lines, pid_t pid, bool all);
/* Makes the pipe wake this process, the next master; -1 with errno. */
int logs_output_take_over(const struct output *output);
void logs_output_close(struct output *output, struct log_quota *lines, pid_t pid);

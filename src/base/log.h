/* SPDX-License-Identifier: BSD-2-Clause */
/* The error log: nginx's levels and line shape, a line written whole by one system call a target.
 *
 *   2026/11/21 09:30:00 [error] 123#0: *5 message (111: Connection refused), client: ...
 *
 * A struct log is owned by one process role. It never allocates while it logs, keeps errno, waits
 * for no reader, and escapes control characters as \xNN, or as JSON does. */
#pragma once

#include "base/clock.h"
#include "base/compiler.h"
#include "base/diag.h"
#include "base/event_log.h"
#include "base/log_line.h"
#include "base/log_target.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The emerg lines of a start, and of a configuration's check. */
struct log_failures {
    unsigned n;
    unsigned temporary; /* lines among these about temporary faults: a port in use */
};

/* The flood limit of a log: of each kind of line only `burst` are written within an interval;
 * further lines are suppressed and counted. A kind is a format string, level, error and route, so
 * that no flood hides other lines. Kinds without room in the table are not limited. */
#define LOG_LIMIT_KINDS 32 /* a power of two */
#define LOG_LIMIT_LIKE_MAX 160

struct log_limit_kind {
    const char *format; /* only compared: it may belong to an unloaded module; NULL: free */
    enum log_level level;
    int error;
    const struct log_route *route;
    uint64_t begun_ms;             /* start of its interval */
    uint32_t n;                    /* lines of it that were written */
    uint32_t suppressed;           /* lines of it that were suppressed */
    char like[LOG_LIMIT_LIKE_MAX]; /* first line that was suppressed */
};

struct log_limit {
    uint32_t burst; /* lines of a kind within an interval */
    uint64_t interval_ms;
    uint64_t report_ms; /* monotonic time of the next report; 0: nothing was suppressed */
    struct log_limit_kind kinds[LOG_LIMIT_KINDS];
};

struct log_limit_report {
    enum log_level level;
    const struct log_route *route; /* of the lines */
    uint32_t n;
    uint64_t ms; /* time in which they came */
    char like[LOG_LIMIT_LIKE_MAX];
};

/* The end of a process at an internal error that it would survive (debug_points). */
enum log_point { LOG_POINT_NONE, LOG_POINT_STOP, LOG_POINT_ABORT };

/* Targets of some lines, in place of the log's. */
struct log_route {
    enum log_level level; /* the most verbose of its targets */
    unsigned n;
    struct {
        struct log_target *target; /* the owner's, as those of the log are */
        enum log_level level;
    } targets[];
};

/* A level in place of the levels of all targets, as a number other than 0. */
#define LOG_OVERRIDE(level) ((uint32_t)(level) + 1)

struct log {
    enum log_level level;  /* the most verbose level of all targets, those of routes included */
    enum log_level common; /* ... of lines without a route */
    enum log_level routed; /* ... of all routes, which the owner sets; LEVEL_EMERG: no routes */
    uint32_t override;     /* LOG_OVERRIDE() of the level in force for all targets; 0: their own */
    unsigned target_n;     /* targets of lines without a route */
    struct log_target *targets; /* array of the owner */
    const char *plain;     /* name: lines are "NAME: [level] message", without a time; or NULL */
    struct log *also;      /* second log, which receives every line as well; or NULL */
    struct diag *diag;     /* collector of alerts and emergencies, or NULL */
    uint32_t diag_session; /* session of the collector */
    struct event_log *event_log;   /* of log_event(): the master's; or NULL */
    struct log_failures *failures; /* counts emerg lines, or NULL */
    const struct log_place *place; /* added to every line of log_write(), or NULL */
    struct log_limit
        *limit; /* flood limit, whose owner calls log_report_suppressed() when it is due; or NULL */
    enum log_point point;   /* set in workers alone */
    _Atomic uint64_t *lost; /* number of lost lines, lines of access logs included; or NULL */
    bool broken;            /* a target is broken: the owner connects it again */
    bool waiting;           /* lines of a target may wait: the owner sends them later */
    pid_t pid;
    struct log_stamp stamp;
};

/* Sets the log up on the given targets, which stay the caller's. */
void log_init(struct log *log, struct log_target *targets, unsigned n);
/* A start-up log: lines go to standard error as "name: [level] message". */
void log_init_plain(struct log *log, struct log_target *target, const char *name);
/* Called after a change of the levels of targets, routes, `also` or `diag`. */
void log_update(struct log *log);
/* Puts a level in force for all targets and routes; 0: the levels of targets and routes. */
void log_set_override(struct log *log, uint32_t override);
/* Adds grave lines to a new session of these diagnostics from now on; NULL: none. */
void log_collect(struct log *log, struct diag *diag);
/* Counts lost lines, for the status. */
void log_count_lost(struct log *log, uint64_t lines);
/* Notes that the last emerg line is about a temporary fault, or a consequence. */
void log_note_temporary(struct log *log);
/* Counts an emerg line of another process, written for us. */
void log_note_failure(struct log *log, bool temporary);
/* Returns a failed start's or check's exit code: EX_TEMPFAIL if all faults are temporary. */
int log_exit_code(const struct log *log);
void log_vput(struct log *log, const struct log_line *line, const char *format, va_list args)
    PRINTF_FORMAT(3, 0);
void log_put(struct log *log, enum log_level level, int error, const char *format, ...)
    PRINTF_FORMAT(4, 5);
/* Writes a line for the client of a change too, whatever the levels of line and log. */
void log_tell(struct log *log, enum log_level level, const char *format, ...) PRINTF_FORMAT(3, 4);
/* Called behind the lines about a survived internal error, or mistake of a module: by debug_points
 * logs `what`, the error, and stops, for a debugger, or aborts, for a core dump. */
void log_debug_point(struct log *log, const char *what);
void log_limit_init(struct log_limit *limit, uint32_t burst, uint64_t interval_ms);
bool log_limit_suppresses(struct log_limit *limit, uint64_t now, const struct log_line *line,
    const char *format, va_list args) PRINTF_FORMAT(4, 0);
/* Takes the report of a kind with an ended interval (`all`: any kind); false: none is due. */
bool log_limit_pop_report(
    struct log_limit *limit, uint64_t now, bool all, struct log_limit_report *report);
/* Logs the numbers of suppressed lines of ended intervals; with `all`, of current ones too. */
void log_report_suppressed(struct log *log, bool all);

/* log_write(log, level, errno or 0, format, ...) */
#define log_write(log, lvl, ...)                                                                   \
    do {                                                                                           \
        if ((lvl) <= (log)->level)                                                                 \
            log_put((log), (lvl), __VA_ARGS__);                                                    \
    } while (0)

/* Notes an event of the kind, whatever the level of the log, and writes its text as a line:
 * log_event(log, kind, level, errno or 0, format, ...) */
#define log_event(log, kind, lvl, error, ...)                                                      \
    do {                                                                                           \
        event_log_note((log)->event_log, (kind), __VA_ARGS__);                                     \
        log_write((log), (lvl), (error), __VA_ARGS__);                                             \
    } while (0)

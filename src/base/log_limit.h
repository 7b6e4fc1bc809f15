/* SPDX-License-Identifier: BSD-2-Clause */
/* The flood limit of a log: of each kind of line only `burst` are written within an interval;
 * further lines are suppressed and counted. A kind is a format string, level, error and route, so
 * that no flood hides other lines. Kinds without room in the table are not limited. */
#pragma once

#include "base/compiler.h"
#include "base/log_line.h"

#include <stdarg.h>

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

/* A report on the suppressed lines of one kind. */
struct log_limit_report {
    enum log_level level;
    const struct log_route *route; /* of the lines */
    uint32_t n;
    uint64_t ms; /* time in which they came */
    char like[LOG_LIMIT_LIKE_MAX];
};

void log_limit_init(struct log_limit *limit, uint32_t burst, uint64_t interval_ms);
/* Counts the line; returns whether it is suppressed. */
bool log_limit_suppresses(struct log_limit *limit, uint64_t now, const struct log_line *line,
    const char *format, va_list args) PRINTF_FORMAT(4, 0);
/* Takes the report of a kind whose interval is over (with `all`: of any kind); false: none is
 * due. */
bool log_limit_pop_report(
    struct log_limit *limit, uint64_t now, bool all, struct log_limit_report *report);

static inline bool log_limit_has_report(const struct log_limit *limit, uint64_t now)
{
    return limit->report_ms != 0 && now >= limit->report_ms;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The latest events of the daemon, such as the death of a worker, for clients of the control
 * socket. Memory has a fixed size: a new event takes the place of the oldest. Owned by the master
 * and reached by its log (`log->event_log`); other processes have none, and note nothing. */
#pragma once

#include "base/clock.h"
#include "base/compiler.h"

#include <stdint.h>

#define EVENT_LOG_MAX 1000
#define EVENT_TEXT_MAX 240 /* with the NUL */

struct event_entry {
    int64_t at_ms; /* since the epoch */
    const char *kind;
    char text[EVENT_TEXT_MAX]; /* one line, without a terminal's control characters */
};

struct event_log {
    const struct clock *clock;
    uint64_t n; /* ever noted: the number of the latest event */
    struct event_entry entries[EVENT_LOG_MAX];
};

/* The clock outlives the log. NULL without memory: no event is noted then. */
struct event_log *event_log_create(const struct clock *clock);
void event_log_destroy(struct event_log **log);
/* Notes an event with the first line of the text. `kind`, a stable word, is a literal; `log` may be
 * NULL. Keeps errno. */
void event_log_note(struct event_log *log, const char *kind, const char *format, ...)
    PRINTF_FORMAT(3, 4);
/* Returns the number of the first kept event after the event `since`; n + 1: there is none. */
uint64_t event_log_next(const struct event_log *log, uint64_t since);
/* Returns a kept event. */
const struct event_entry *event_log_find(const struct event_log *log, uint64_t number);

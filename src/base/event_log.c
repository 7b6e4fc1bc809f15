/* SPDX-License-Identifier: BSD-2-Clause */
/* A ring of events, allocated once, with pages touched as needed. An event with the
 * number N has the place (N - 1) modulo the size. */
#include "base/event_log.h"

#include "base/log_line.h"

#include <assert.h>
#include <bsd/string.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct event_log *event_log_create(const struct clock *clock)
{
    struct event_log *log = calloc(1, sizeof(*log));

    if (log != NULL)
        log->clock = clock;
    return log;
}

void event_log_destroy(struct event_log **log)
{
    free(*log);
    *log = NULL;
}

void event_log_note(struct event_log *log, const char *kind, const char *format, ...)
{
    char line[EVENT_TEXT_MAX];
    struct log_text text = { .n = 0 };
    struct event_entry *event;
    int saved = errno;
    va_list args;

    if (log == NULL)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    line[strcspn(line, "\n")] = '\0';
    log_text_add(&text, line);
    text.bytes[text.n] = '\0';
    event = &log->entries[log->n++ % EVENT_LOG_MAX];
    event->at_ms = log->clock->wall_ms;
    event->kind = kind;
    strlcpy(event->text, text.bytes, sizeof(event->text));
    errno = saved;
}

uint64_t event_log_next(const struct event_log *log, uint64_t since)
{
    uint64_t oldest = log->n > EVENT_LOG_MAX ? log->n - EVENT_LOG_MAX + 1 : 1;

    return since >= log->n ? log->n + 1 : since + 1 > oldest ? since + 1 : oldest;
}

const struct event_entry *event_log_find(const struct event_log *log, uint64_t number)
{
    assert(number > 0 && number <= log->n && log->n - number < EVENT_LOG_MAX);
    return &log->entries[(number - 1) % EVENT_LOG_MAX];
}

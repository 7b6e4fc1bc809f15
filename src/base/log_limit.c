/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts lines in a hash table of a fixed size and never allocates. A kind whose suppressed lines
 * are not yet reported keeps its place in the table. */
#include "base/log_limit.h"

#include "os/process.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define PLACES 4 /* successive entries of the table in which a kind may lie */

void log_limit_init(struct log_limit *limit, uint32_t burst, uint64_t interval_ms)
{
    assert(burst > 0 && interval_ms > 0);
    *limit = (struct log_limit) { .burst = burst, .interval_ms = interval_ms };
}

static bool is_interval_over(
    const struct log_limit *limit, const struct log_limit_kind *kind, uint64_t now)
{
    return now - kind->begun_ms >= limit->interval_ms;
}

static size_t kind_place(const struct log_line *line, const char *format)
{
    uint64_t key = (uint64_t)(uintptr_t)format ^ (uint64_t)(unsigned)line->error << 32 ^
                   (uint64_t)line->level << 56 ^ (uint64_t)(uintptr_t)line->route << 16;

    return (size_t)(key * 0x9e3779b97f4a7c15u >> 32);
}

/* Finds the kind of the line. A new kind takes the oldest kind's place; NULL where all places have
 * unreported lines. */
static struct log_limit_kind *find_kind(
    struct log_limit *limit, uint64_t now, const struct log_line *line, const char *format)
{
    size_t first = kind_place(line, format);
    struct log_limit_kind *oldest = NULL;

    for (size_t i = 0; i < PLACES; i++) {
        struct log_limit_kind *kind = &limit->kinds[(first + i) % LOG_LIMIT_KINDS];

        if (kind->format == format && kind->level == line->level && kind->error == line->error &&
            kind->route == line->route)
            return kind;
        if (kind->suppressed == 0 && (oldest == NULL || kind->begun_ms < oldest->begun_ms))
            oldest = kind;
    }
    if (oldest != NULL) {
        oldest->format = format;
        oldest->level = line->level;
        oldest->error = line->error;
        oldest->route = line->route;
        oldest->begun_ms = now;
        oldest->n = 0;
    }
    return oldest;
}

static void PRINTF_FORMAT(3, 0)
    note_first_line(struct log_limit_kind *kind, int error, const char *format, va_list args)
{
    size_t n, most = sizeof(kind->like);
    char reason[128];

    vsnprintf(kind->like, most, format, args);
    n = strlen(kind->like);
    if (error != 0)
        snprintf(kind->like + n, most - n, " (%d: %s)", error,
            os_error_text(error, reason, sizeof(reason)));
}

bool log_limit_suppresses(struct log_limit *limit, uint64_t now, const struct log_line *line,
    const char *format, va_list args)
{
    struct log_limit_kind *kind = find_kind(limit, now, line, format);

    if (kind == NULL)
        return false;
    assert(kind->suppressed == 0 || kind->n >= limit->burst);
    if (kind->suppressed == 0 && is_interval_over(limit, kind, now)) {
        kind->begun_ms = now;
        kind->n = 0;
    }
    if (kind->n < limit->burst) {
        kind->n++;
        return false;
    }
    if (kind->suppressed == 0)
        note_first_line(kind, line->error, format, args);
    if (kind->suppressed < UINT32_MAX)
        kind->suppressed++;
    if (limit->report_ms == 0 || limit->report_ms > kind->begun_ms + limit->interval_ms)
        limit->report_ms = kind->begun_ms + limit->interval_ms;
    return true;
}

bool log_limit_pop_report(
    struct log_limit *limit, uint64_t now, bool all, struct log_limit_report *suppressed)
{
    struct log_limit_kind *found = NULL;

    limit->report_ms = 0;
    for (size_t i = 0; i < LOG_LIMIT_KINDS; i++) {
        struct log_limit_kind *kind = &limit->kinds[i];
        uint64_t due = kind->begun_ms + limit->interval_ms;

        if (kind->suppressed == 0)
            continue;
        if (found == NULL && (all || is_interval_over(limit, kind, now)))
            found = kind;
        else if (limit->report_ms == 0 || due < limit->report_ms)
            limit->report_ms = due;
    }
    if (found == NULL)
        return false;
    assert(found->format != NULL && found->suppressed > 0);
    *suppressed = (struct log_limit_report) {
        .level = found->level, .route = found->route, .n = found->suppressed
    };
    suppressed->ms =
        is_interval_over(limit, found, now) ? limit->interval_ms : now - found->begun_ms;
    memcpy(suppressed->like, found->like, sizeof(suppressed->like));
    found->suppressed = 0;
    if (is_interval_over(limit, found, now)) {
        found->begun_ms = now;
        found->n = 0;
    }
    return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a line, formatted once, to all targets of a log, the second log and the diagnostics,
 * within the flood limit: a hash table of a fixed size, where kinds with unreported lines keep
 * their places. Never allocates, and keeps errno. */
#include "base/log.h"

#include "base/diag.h"
#include "base/log_line.h"
#include "os/process.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_PLACES 4 /* successive entries of the table for a kind */

/* Returns the level of the second log and the diagnostics. */
static enum log_level level_of_others(const struct log *log)
{
    enum log_level level = log->diag != NULL ? LEVEL_ALERT : LEVEL_EMERG;

    return log->also != NULL && log->also->level > level ? log->also->level : level;
}

/* Returns the level in force of a target or a route with this level. */
static enum log_level level_in_force(const struct log *log, enum log_level own)
{
    return log->override != 0 ? (enum log_level)(log->override - 1) : own;
}

/* Whether any target takes the line; the log's level is the most verbose target's. */
static bool is_line_wanted(const struct log *log, const struct log_line *line)
{
    if (line->route == NULL)
        return line->level <= log->common || line->force;
    return line->level <= level_in_force(log, line->route->level) ||
           line->level <= level_of_others(log) || line->force;
}

void log_update(struct log *log)
{
    enum log_level level = level_of_others(log);

    assert(log->also != log);
    for (unsigned i = 0; i < log->target_n; i++)
        if (level_in_force(log, log->targets[i].level) > level)
            level = level_in_force(log, log->targets[i].level);
    log->common = level;
    /* an override is the level of routes, too */
    log->level = log->override == 0 && log->routed > level ? log->routed : level;
}

void log_set_override(struct log *log, uint32_t override)
{
    assert(override <= LOG_OVERRIDE(LEVEL_DEBUG));
    log->override = override;
    log_update(log);
}

void log_collect(struct log *log, struct diag *diag)
{
    log->diag = diag;
    if (diag != NULL)
        log->diag_session = diag_begin(diag);
    log_update(log);
}

void log_init(struct log *log, struct log_target *targets, unsigned n)
{
    assert(n == 0 || targets != NULL);
    *log = (struct log) { .targets = targets, .target_n = n, .pid = getpid() };
    log->stamp.second = -1;
    log_update(log);
}

void log_init_plain(struct log *log, struct log_target *target, const char *name)
{
    *target = (struct log_target) { .fd = STDERR_FILENO, .level = LEVEL_NOTICE };
    log_init(log, target, 1);
    log->plain = name;
}

void log_note_temporary(struct log *log)
{
    if (log->failures != NULL)
        log->failures->temporary++;
}

void log_note_failure(struct log *log, bool temporary)
{
    if (log->failures == NULL)
        return;
    log->failures->n++;
    log->failures->temporary += temporary;
}

int log_exit_code(const struct log *log)
{
    const struct log_failures *failures = log->failures;

    if (failures != NULL && failures->n > 0 && failures->temporary >= failures->n)
        return EX_TEMPFAIL;
    return EXIT_FAILURE;
}

/* Adds lines of level alert and above to the diagnostics, without the time and the pid. */
static void collect_diag(const struct log *log, struct log_entry *entry)
{
    struct diag_text text = { .level = entry->line->level };
    const struct log_place *place = entry->line->place;

    log_text_make(entry);
    text.text = entry->text.bytes + entry->head;
    text.text_n = (int)(entry->text.n - entry->head) - 1;
    if (place != NULL) {
        text.text_n = (int)(entry->place - entry->head);
        text.file = place->file;
        text.line = place->line;
        text.column = place->column;
        text.excerpt = place->excerpt != NULL ? place->excerpt(place) : NULL;
    }
    diag_add(log->diag, log->diag_session, &text);
}

void log_count_lost(struct log *log, uint64_t lines)
{
    uint64_t n;

    if (log->lost == NULL || lines == 0)
        return;
    n = atomic_load_explicit(log->lost, memory_order_relaxed);
    atomic_store_explicit(log->lost, n + lines, memory_order_relaxed);
}

/* Logs how many lines a target has lost, once it accepts lines again. */
static void log_report_lost(struct log *log, struct log_target *target)
{
    struct diag *diag = log->diag;
    uint64_t n = target->lost;
    char name[LOG_TARGET_NAME];

    assert(n > 0);
    target->lost = 0;
    log->diag = NULL; /* the line is about the log, not about the requested change */
    log_put(log, LEVEL_ALERT, 0, "%" PRIu64 " line%s not accepted by %s", n,
        n == 1 ? " was" : "s were", log_target_name(target, name));
    log->diag = diag;
    if (target->lost > 0) /* the target has refused this line, too */
        target->lost += n;
}

static void write_to_target(
    struct log *log, struct log_target *target, enum log_level level, struct log_entry *entry)
{
    uint64_t lost = target->lost;

    if (target->fd == -1 ||
        (entry->line->level > level_in_force(log, level) && !entry->line->force))
        return;
    log_target_write(target, entry);
    log_count_lost(log, target->lost - lost);
    log->broken = log->broken || target->broken;
    log->waiting = log->waiting || log_target_waits(target);
    if (lost > 0 && lost == target->lost)
        log_report_lost(log, target);
}

static void write_to_targets(struct log *log, struct log_entry *entry)
{
    const struct log_route *route = entry->line->route;

    for (unsigned i = 0; route != NULL && i < route->n; i++)
        write_to_target(log, route->targets[i].target, route->targets[i].level, entry);
    for (unsigned i = 0; route == NULL && i < log->target_n; i++)
        write_to_target(log, &log->targets[i], log->targets[i].level, entry);
}

/* Writes a line without checking the flood limit. */
static void PRINTF_FORMAT(3, 0)
    emit(struct log *log, const struct log_line *line, const char *format, va_list args)
{
    struct log_entry entry; /* too large to be cleared for nothing */

    if (line->level == LEVEL_EMERG)
        log_note_failure(log, false);
    if (log->also != NULL) {
        struct log_line also = *line;
        va_list copy;

        also.route = NULL; /* the second log has other targets */
        va_copy(copy, args);
        log_vput(log->also, &also, format, copy);
        va_end(copy);
    }
    entry.line = line;
    entry.plain = log->plain;
    entry.pid = log->pid;
    entry.stamp = &log->stamp;
    entry.has_text = entry.has_json = false;
    if (vsnprintf(entry.message, sizeof(entry.message), format, args) < 0)
        entry.message[0] = '\0';
    if (log->diag != NULL && line->level <= LEVEL_ALERT)
        collect_diag(log, &entry);
    write_to_targets(log, &entry);
}

static void PRINTF_FORMAT(3, 4)
    emit_line(struct log *log, const struct log_line *line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    emit(log, line, format, args);
    va_end(args);
}

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

/* Finds the line's kind. A new kind replaces the oldest; NULL: all have unreported lines. */
static struct log_limit_kind *find_kind(
    struct log_limit *limit, uint64_t now, const struct log_line *line, const char *format)
{
    size_t first = kind_place(line, format);
    struct log_limit_kind *oldest = NULL;

    for (size_t i = 0; i < LIMIT_PLACES; i++) {
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

static uint64_t read_mono_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void log_report_suppressed(struct log *log, bool all)
{
    uint64_t now = read_mono_ms();
    struct log_limit_report suppressed;
    int saved = errno;

    while (log->limit != NULL && log_limit_pop_report(log->limit, now, all, &suppressed)) {
        struct log_line line = { .level = suppressed.level, .route = suppressed.route };

        if (is_line_wanted(log, &line)) /* the levels may have changed */
            emit_line(log, &line,
                "%" PRIu32 " more line%s like \"%s\" %s suppressed in the last %" PRIu64 " %s",
                suppressed.n, suppressed.n == 1 ? "" : "s", suppressed.like,
                suppressed.n == 1 ? "was" : "were",
                suppressed.ms % 1000 == 0 ? suppressed.ms / 1000 : suppressed.ms,
                suppressed.ms % 1000 == 0 ? "s" : "ms");
    }
    errno = saved;
}

/* Checks the flood limit: not for lines of crit and above, debug lines, and forced lines. */
static bool PRINTF_FORMAT(3, 0)
    is_suppressed(struct log *log, const struct log_line *line, const char *format, va_list args)
{
    uint64_t now;
    va_list copy;
    bool suppressed;

    if (log->limit == NULL || line->level <= LEVEL_CRIT || line->level >= LEVEL_DEBUG ||
        line->force)
        return false;
    now = read_mono_ms();
    if (log->limit->report_ms != 0 && now >= log->limit->report_ms)
        log_report_suppressed(log, false);
    va_copy(copy, args);
    suppressed = log_limit_suppresses(log->limit, now, line, format, copy);
    va_end(copy);
    return suppressed;
}

void log_vput(struct log *log, const struct log_line *line, const char *format, va_list args)
{
    int saved = errno;

    if (is_line_wanted(log, line) && !is_suppressed(log, line, format, args))
        emit(log, line, format, args);
    errno = saved;
}

void log_put(struct log *log, enum log_level level, int error, const char *format, ...)
{
    struct log_line line = { .level = level, .error = error, .place = log->place };
    va_list args;

    va_start(args, format);
    log_vput(log, &line, format, args);
    va_end(args);
}

COLD void log_tell(struct log *log, enum log_level level, const char *format, ...)
{
    struct diag *diag = log->diag;
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    log->diag = NULL; /* the line is added once */
    log_write(log, level, 0, "%s", text);
    log->diag = diag;
    if (diag != NULL)
        diag_add(diag, log->diag_session,
            &(struct diag_text) { .level = level, .text = text, .text_n = -1 });
}

COLD void log_debug_point(struct log *log, const char *what)
{
    if (log->point == LOG_POINT_NONE)
        return;
    log_put(log, LEVEL_ALERT, 0, "debug_points: the process %s here: %s",
        log->point == LOG_POINT_STOP ? "stops" : "aborts", what);
    if (log->point == LOG_POINT_STOP)
        raise(SIGSTOP);
    else
        abort();
}

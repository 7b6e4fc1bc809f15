/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects the mistakes of a configuration and writes them to the log. When memory is lacking for
 * the text of a mistake, the mistake is still counted, so that a configuration with errors never
 * counts as correct. */
#include "conf/report.h"

#include "conf/conf.h"
#include "conf/excerpt.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 1024   /* a message without its place; the log's line takes both */
#define WRITTEN_MAX 100 /* bytes of a word with variables, as the file has it */

void report_init(struct conf_report *report, struct arena *arena)
{
    *report = (struct conf_report) { .arena = arena };
    STAILQ_INIT(&report->mistakes);
}

/* Formats a message. A long one ends in "...", never within a character. */
static void PRINTF_FORMAT(3, 0)
    format_text(const struct conf_report *report, char *text, const char *format, va_list args)
{
    size_t end = TEXT_MAX - sizeof("...");
    int before = 0, n;

    if (report->module != NULL)
        before = snprintf(text, TEXT_MAX,
            "module \"%.512s\" has a wrong default of \"%.100s\": ", report->module,
            report->directive);
    n = vsnprintf(text + before, (size_t)(TEXT_MAX - before), format, args);
    if (n < 0)
        text[before] = '\0';
    if (before + n < TEXT_MAX)
        return;
    while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    memcpy(text + end, "...", sizeof("..."));
}

static unsigned count_stored(const struct conf_report *report, enum log_level level)
{
    const struct report_mistake *mistake;
    unsigned n = 0;

    STAILQ_FOREACH (mistake, &report->mistakes, link)
        n += mistake->level == level;
    return n;
}

static bool is_known(const struct conf_report *report, enum log_level level, const char *message)
{
    const struct report_mistake *mistake;

    STAILQ_FOREACH (mistake, &report->mistakes, link) {
        if (mistake->level == level && strcmp(mistake->message, message) == 0)
            return true;
    }
    return false;
}

static void count_dropped(struct conf_report *report, enum log_level level)
{
    if (level == LEVEL_EMERG)
        report->dropped_errors++;
    else if (level == LEVEL_NOTICE)
        report->dropped_notices++;
    else
        report->dropped_warnings++;
}

static void store_mistake(struct conf_report *report, enum log_level level,
    const struct conf_word *word, const char *message, size_t text_n)
{
    struct report_mistake *mistake;

    assert(level == LEVEL_EMERG || level == LEVEL_WARN || level == LEVEL_NOTICE);
    assert(text_n <= strlen(message));
    if (is_known(report, level, message))
        return;
    if (report->arena == NULL || count_stored(report, level) == REPORT_MISTAKES_MAX ||
        (mistake = arena_alloc(report->arena, sizeof(*mistake))) == NULL ||
        (mistake->message = arena_strdup(report->arena, message)) == NULL) {
        count_dropped(report, level);
        return;
    }
    mistake->level = level;
    mistake->text_n = (int)text_n;
    if (word != NULL)
        mistake->excerpt = conf_excerpt(report->arena, word);
    if (word != NULL && word->file != NULL) {
        mistake->file = word->file->name;
        mistake->line = word->line;
        mistake->column = word->column;
    }
    STAILQ_INSERT_TAIL(&report->mistakes, mistake, link);
}

static void PRINTF_FORMAT(4, 0) add_message(struct conf_report *report, enum log_level level,
    const struct conf_word *word, const char *format, va_list args)
{
    char text[TEXT_MAX + WRITTEN_MAX + 16];
    char message[sizeof(text) + PATH_MAX + 64];
    size_t n;

    format_text(report, text, format, args);
    n = strlen(text);
    if (word != NULL &&
        word->written != NULL) /* the replaced text may be found nowhere in the file */
        snprintf(text + n, sizeof(text) - n, " (from \"%.*s\")", WRITTEN_MAX, word->written);
    if (word == NULL || word->file == NULL)
        snprintf(message, sizeof(message), "%s", text);
    else
        snprintf(message, sizeof(message), "%s in %s:%u:%u", text, word->file->name, word->line,
            word->column);
    store_mistake(report, level, word, message, strlen(text));
}

void report_error(struct conf_report *report, const struct conf_word *word, const char *format, ...)
{
    va_list args;

    report->error_n++;
    va_start(args, format);
    add_message(report, LEVEL_EMERG, word, format, args);
    va_end(args);
}

void report_note_temporary(struct conf_report *report)
{
    assert(report->temporary_n < report->error_n);
    report->temporary_n++;
}

void report_warn(struct conf_report *report, const struct conf_word *word, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_message(report, LEVEL_WARN, word, format, args);
    va_end(args);
}

void report_notice(
    struct conf_report *report, const struct conf_word *word, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_message(report, LEVEL_NOTICE, word, format, args);
    va_end(args);
}

static void write_all(int fd, const char *text)
{
    size_t n = strlen(text);

    while (n > 0) {
        ssize_t written = write(fd, text, n);

        /* an excerpt that cannot be written is not worth a failure; its message is in the log */
        if (written == -1 && errno != EINTR)
            return;
        if (written > 0) {
            text += written;
            n -= (size_t)written;
        }
    }
}

/* Writes a mistake to the log, and to the collector of diagnostics with its place in fields of its
 * own. */
static void show_mistake(const struct report_mistake *mistake, struct log *log)
{
    struct diag *diag = log->diag;
    struct diag_text text = {
        .level = mistake->level,
        .line = mistake->line,
        .column = mistake->column,
        .text = mistake->message,
        .text_n = mistake->text_n,
        .file = mistake->file,
        .excerpt = mistake->excerpt,
    };

    log->diag = NULL;
    log_write(log, mistake->level, 0, "%s", mistake->message);
    log->diag = diag;
    if (diag != NULL)
        diag_add(diag, log->diag_session, &text);
}

static void show_dropped(const struct conf_report *report, struct log *log, enum log_level level,
    unsigned n, const char *what)
{
    if (n == 0)
        return;
    if (count_stored(report, level) == REPORT_MISTAKES_MAX)
        log_write(log, level, 0, "too many %s, %u more not shown", what, n);
    else
        log_write(log, level, 0, "out of memory, %s not shown: %u", what, n);
}

void report_show(const struct conf_report *report, struct log *log, int excerpts)
{
    bool temporary = report->temporary_n > 0 && report->temporary_n == report->error_n;
    const struct report_mistake *mistake;

    STAILQ_FOREACH (mistake, &report->mistakes, link) {
        bool told = log->diag != NULL && mistake->level <= LEVEL_WARN;

        if (mistake->level > log->level && !told)
            continue;
        assert(mistake->message != NULL && (mistake->file == NULL) == (mistake->line == 0));
        show_mistake(mistake, log);
        if (temporary && mistake->level == LEVEL_EMERG)
            log_note_temporary(log);
        if (excerpts != -1 && mistake->excerpt != NULL)
            write_all(excerpts, mistake->excerpt);
    }
    show_dropped(report, log, LEVEL_EMERG, report->dropped_errors, "errors");
    if (temporary && report->dropped_errors > 0)
        log_note_temporary(log);
    show_dropped(report, log, LEVEL_WARN, report->dropped_warnings, "warnings");
    show_dropped(report, log, LEVEL_NOTICE, report->dropped_notices, "notices");
}

static const char *make_excerpt(const struct log_place *place)
{
    const struct report_place *own = container_of(place, const struct report_place, place);

    return conf_excerpt(own->arena, own->word);
}

const struct log_place *report_place_init(
    struct report_place *place, const struct conf_word *word, struct arena *arena)
{
    bool known = word != NULL && word->file != NULL;

    *place = (struct report_place) { .word = known ? word : NULL, .arena = arena };
    if (!known)
        return NULL;
    place->place = (struct log_place) {
        .file = word->file->name,
        .line = word->line,
        .column = word->column,
        .excerpt = make_excerpt,
    };
    return &place->place;
}

void report_show_excerpt(const struct report_place *place, int excerpts)
{
    const char *excerpt = NULL;

    if (place->word != NULL && excerpts != -1)
        excerpt = make_excerpt(&place->place);
    if (excerpt != NULL)
        write_all(excerpts, excerpt);
}

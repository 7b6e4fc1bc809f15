/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects the mistakes of a configuration, and writes each to the log with an excerpt: the line of
 * the file, and a mark under the word. A mistake without memory for its text is still counted. */
#include "conf/report.h"

#include "conf/conf.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 1024   /* a message without its place; the log's line takes both */
#define WRITTEN_MAX 100 /* bytes of a word with variables, as the file has it */
#define SHOWN_MAX 160   /* bytes of an excerpt's line */
#define SHOWN_BEFORE 60 /* bytes shown before the word, where the line is clipped */
#define TAB_WIDTH 8
#define ELLIPSIS "..."

/* ---- Excerpts ---- */

struct span {
    const char *start, *end;
};

struct drawing {
    char line[SHOWN_MAX * TAB_WIDTH + sizeof(ELLIPSIS) * 2];
    char mark[SHOWN_MAX * TAB_WIDTH + sizeof(ELLIPSIS) * 2];
    size_t line_n, mark_n;
    size_t column;
};

/* The line's bytes; false where the file lacks the line. */
static bool find_line(const struct conf_file *file, unsigned number, struct span *line)
{
    const char *p = file->text, *end = file->text + file->size;

    if (number == 0)
        return false;
    while (--number > 0) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (p == NULL)
            return false;
        p++;
    }
    line->start = p;
    line->end = memchr(p, '\n', (size_t)(end - p));
    if (line->end == NULL)
        line->end = end;
    if (line->end > line->start && line->end[-1] == '\r')
        line->end--;
    return true;
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Chooses the visible part of a long line. */
static struct span clip_line(const struct span *line, const struct span *word)
{
    struct span shown = *line;

    if (line->end - line->start <= SHOWN_MAX)
        return shown;
    if (word->start - line->start > SHOWN_BEFORE)
        shown.start = word->start - SHOWN_BEFORE;
    if (shown.end - shown.start > SHOWN_MAX)
        shown.end = shown.start + SHOWN_MAX;
    while (shown.start > line->start && shown.start < word->start && is_continuation(*shown.start))
        shown.start++;
    while (shown.end < line->end && shown.end > word->start && is_continuation(*shown.end))
        shown.end--;
    return shown;
}

/* The bytes of the UTF-8 character at p; 0 for an invalid character, or a control character. */
static size_t printable_width(const char *p, const char *end)
{
    unsigned char c = (unsigned char)*p;
    size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

    if (c < 0x20 || c == 0x7f || (size_t)(end - p) < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if (!is_continuation(p[i]))
            return 0;
    if (c == 0xc2 && (unsigned char)p[1] < 0xa0)
        return 0;
    return n;
}

static void draw_text(struct drawing *drawing, const char *text, size_t n, size_t width)
{
    assert(drawing->line_n + n <= sizeof(drawing->line));
    memcpy(drawing->line + drawing->line_n, text, n);
    drawing->line_n += n;
    drawing->column += width;
}

/* Draws the character at p, and returns its bytes in the file. */
static size_t draw_character(struct drawing *drawing, const char *p, const char *end)
{
    size_t n = printable_width(p, end);
    char hex[8];

    if (n > 0) {
        draw_text(drawing, p, n, 1);
        return n;
    }
    if (*p == '\t') {
        n = TAB_WIDTH - drawing->column % TAB_WIDTH;
        draw_text(drawing, "        ", n, n);
    } else {
        n = (size_t)snprintf(hex, sizeof(hex), "\\x%02x", (unsigned char)*p);
        draw_text(drawing, hex, n, n);
    }
    return 1;
}

/* Marks the columns drawn since the last call. */
static void draw_mark(struct drawing *drawing, const struct span *word, const char *p)
{
    while (drawing->mark_n < drawing->column) {
        char c = p < word->start ? ' ' : '~';

        if (c == '~' && (drawing->mark_n == 0 || drawing->mark[drawing->mark_n - 1] == ' '))
            c = '^';
        assert(drawing->mark_n < sizeof(drawing->mark));
        drawing->mark[drawing->mark_n++] = c;
    }
}

static void draw_line(struct drawing *drawing, const struct span *line, const struct span *word)
{
    const struct span shown = clip_line(line, word);

    assert(line->start <= word->start && word->end <= line->end);
    if (shown.start > line->start) {
        draw_text(drawing, ELLIPSIS, strlen(ELLIPSIS), strlen(ELLIPSIS));
        draw_mark(drawing, word, line->start);
    }
    for (const char *p = shown.start, *next; p < shown.end; p = next) {
        next = p + draw_character(drawing, p, shown.end);
        if (p < word->end)
            draw_mark(drawing, word, p);
    }
    /* a place after the last byte of the line */
    if (drawing->mark_n == drawing->column && word->start == shown.end)
        drawing->mark[drawing->mark_n++] = '^';
    if (shown.end < line->end)
        draw_text(drawing, ELLIPSIS, strlen(ELLIPSIS), strlen(ELLIPSIS));
}

/* Draws the word's line, clipped around the word, and a line with the mark "^~~~", "\n" each, with
 * unprintable bytes as \xNN. NULL: an empty line, no such place, or no memory. */
static const char *make_excerpt(struct arena *arena, const struct conf_word *word)
{
    struct drawing drawing;
    struct span line, marked;
    size_t width;

    if (word->file == NULL || !find_line(word->file, word->line, &line) || line.start == line.end)
        return NULL;
    if (word->column == 0 || word->column - 1 > (size_t)(line.end - line.start))
        return NULL;
    width = word->width > 0 ? word->width : 1;
    marked.start = line.start + word->column - 1;
    if ((size_t)(line.end - marked.start) < width)
        marked.end = line.end;
    else
        marked.end = marked.start + width;
    drawing.line_n = drawing.mark_n = drawing.column = 0;
    draw_line(&drawing, &line, &marked);
    return arena_printf(arena, "%.*s\n%.*s\n", (int)drawing.line_n, drawing.line,
        (int)drawing.mark_n, drawing.mark);
}

/* ---- Mistakes ---- */

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

static void store_mistake(struct conf_report *report, enum log_level level,
    const struct conf_word *word, const char *message, size_t text_n)
{
    struct report_mistake *mistake;

    assert(level == LEVEL_EMERG || level == LEVEL_WARN || level == LEVEL_NOTICE);
    assert(text_n <= strlen(message));
    STAILQ_FOREACH (mistake, &report->mistakes, link)
        if (mistake->level == level && strcmp(mistake->message, message) == 0)
            return;
    if (report->arena == NULL || report->stored[level] == REPORT_MISTAKES_MAX ||
        (mistake = arena_alloc(report->arena, sizeof(*mistake))) == NULL ||
        (mistake->message = arena_strdup(report->arena, message)) == NULL) {
        report->dropped[level]++;
        return;
    }
    report->stored[level]++;
    mistake->level = level;
    mistake->text_n = (int)text_n;
    if (word != NULL)
        mistake->excerpt = make_excerpt(report->arena, word);
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

int report_error(struct conf_report *report, const struct conf_word *word, const char *format, ...)
{
    va_list args;

    report->error_n++;
    va_start(args, format);
    add_message(report, LEVEL_EMERG, word, format, args);
    va_end(args);
    return -1;
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

static void write_excerpt(int fd, const char *text)
{
    size_t n = strlen(text);

    while (n > 0) {
        ssize_t written = write(fd, text, n);

        /* an unwritable excerpt is not worth a failure; the log has the message */
        if (written == -1 && errno != EINTR)
            return;
        if (written > 0) {
            text += written;
            n -= (size_t)written;
        }
    }
}

/* Writes a mistake to the log, and with the place in fields to the diagnostics. */
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

static void show_dropped(
    const struct conf_report *report, struct log *log, enum log_level level, const char *what)
{
    unsigned n = report->dropped[level];

    if (n == 0)
        return;
    if (report->stored[level] == REPORT_MISTAKES_MAX)
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
            write_excerpt(excerpts, mistake->excerpt);
    }
    show_dropped(report, log, LEVEL_EMERG, "errors");
    if (temporary && report->dropped[LEVEL_EMERG] > 0)
        log_note_temporary(log);
    show_dropped(report, log, LEVEL_WARN, "warnings");
    show_dropped(report, log, LEVEL_NOTICE, "notices");
}

static const char *excerpt_of_place(const struct log_place *place)
{
    const struct report_place *own = container_of(place, const struct report_place, place);

    return make_excerpt(own->arena, own->word);
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
        .excerpt = excerpt_of_place,
    };
    return &place->place;
}

void report_show_excerpt(const struct report_place *place, int excerpts)
{
    const char *excerpt = NULL;

    if (place->word != NULL && excerpts != -1)
        excerpt = excerpt_of_place(&place->place);
    if (excerpt != NULL)
        write_excerpt(excerpts, excerpt);
}

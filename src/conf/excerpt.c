/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws a line of a configuration file and a mark under a word. Every byte of the file comes out as
 * a printable character or as \xNN, and both lines have a limited width. */
#include "conf/excerpt.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX 160   /* bytes of the line */
#define SHOWN_BEFORE 60 /* bytes shown before the word, where the line is clipped */
#define TAB_WIDTH 8
#define ELLIPSIS "..."

struct span {
    const char *start, *end;
};

struct drawing {
    char line[SHOWN_MAX * TAB_WIDTH + sizeof(ELLIPSIS) * 2];
    char mark[SHOWN_MAX * TAB_WIDTH + sizeof(ELLIPSIS) * 2];
    size_t line_n, mark_n;
    size_t column;
};

/* The line's bytes; false where the file has no such line. */
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

/* Chooses the part of a long line that is shown. */
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

/* The bytes of the UTF-8 character at p; 0 when it is none, or one that controls a terminal. */
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

/* Draws the character at p, and returns the bytes that it took. */
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

/* Marks the columns that were drawn since the last call. */
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

const char *conf_excerpt(struct arena *arena, const struct conf_word *word)
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

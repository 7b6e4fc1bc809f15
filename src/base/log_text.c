/* SPDX-License-Identifier: BSD-2-Clause */
/* The text form of a line, in nginx's shape. Bytes that a terminal would act on become \xNN, and
 * what has no room is left out; the newline always has room. */
#include "base/log_form.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fb_log_add(struct fb_log_text *text, const char *s)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char before = 0;

    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        /* the second byte of a C1 control character in UTF-8 counts as one too */
        bool c1 = before == 0xc2 && c >= 0x80 && c < 0xa0;
        bool plain = c >= 0x20 && c != 0x7f && !c1;

        if (text->n + 5 > sizeof(text->bytes))
            return;
        before = c;
        if (plain) {
            text->bytes[text->n++] = (char)c;
            continue;
        }
        text->bytes[text->n++] = '\\';
        text->bytes[text->n++] = 'x';
        text->bytes[text->n++] = hex[c >> 4];
        text->bytes[text->n++] = hex[c & 15];
    }
}

void fb_log_add_format(struct fb_log_text *text, const char *format, ...)
{
    char piece[256];
    va_list args;

    va_start(args, format);
    vsnprintf(piece, sizeof(piece), format, args);
    va_end(args);
    fb_log_add(text, piece);
}

static void add_head(struct fb_log_text *text, const struct fb_log_entry *entry)
{
    const char *level = fb_level_name(entry->line->level);

    if (entry->plain != NULL) {
        fb_log_add(text, entry->plain);
        fb_log_add_format(text, ": [%s] ", level);
        return;
    }
    log_stamp_update(entry->stamp);
    fb_log_add_format(text, "%s [%s] %d#0: ", entry->stamp->date, level, (int)entry->pid);
}

/* Adds the addresses, which nginx calls the line's context. */
static void add_context(struct fb_log_text *text, const struct fb_log_line *line)
{
    if (line->client != NULL) {
        fb_log_add(text, ", client: ");
        fb_log_add(text, line->client);
    }
    if (line->server != NULL) {
        fb_log_add(text, ", server: ");
        fb_log_add(text, line->server);
    }
    if (line->upstream != NULL) {
        fb_log_add(text, ", upstream: \"");
        fb_log_add(text, line->upstream);
        fb_log_add(text, "\"");
    }
}

const struct fb_log_text *fb_log_form_text(struct fb_log_entry *entry)
{
    struct fb_log_text *text = &entry->text;
    const struct fb_log_line *line = entry->line;
    char reason[128];

    if (entry->has_text)
        return text;
    entry->has_text = true;
    text->n = 0;
    add_head(text, entry);
    entry->head = text->n;
    if (line->connection != 0)
        fb_log_add_format(text, "*%llu ", (unsigned long long)line->connection);
    fb_log_add(text, entry->message);
    if (line->error != 0) /* the GNU function, which may answer with a constant */
        fb_log_add_format(
            text, " (%d: %s)", line->error, strerror_r(line->error, reason, sizeof(reason)));
    add_context(text, line);
    assert(text->n < sizeof(text->bytes));
    text->bytes[text->n++] = '\n';
    return text;
}

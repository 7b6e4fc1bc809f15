/* SPDX-License-Identifier: BSD-2-Clause */
/* The text form of a line, in nginx's shape, with the names of levels and the time. Bytes that a
 * terminal would act on become \xNN, and what has no room is left out; the newline always has
 * room. Only log_stamp_update() calls strftime() for a local time. */
#include "base/log_line.h"
#include "os/process.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const level_names[] = { "emerg", "alert", "crit", "error", "warn", "notice",
    "info", "debug" };

const char *log_level_name(enum log_level level)
{
    assert((unsigned)level < countof(level_names));
    return level_names[level];
}

int log_level_parse(const char *name)
{
    for (unsigned i = 0; i < countof(level_names); i++)
        if (strcmp(level_names[i], name) == 0)
            return (int)i;
    return -1;
}

void log_stamp_update(struct log_stamp *stamp)
{
    time_t now = time(NULL);
    struct tm tm;

    if (now == stamp->second)
        return;
    localtime_r(&now, &tm);
    strftime(stamp->date, sizeof(stamp->date), "%Y/%m/%d %H:%M:%S", &tm);
    strftime(stamp->syslog, sizeof(stamp->syslog), "%b %e %H:%M:%S", &tm);
    stamp->second = now;
}

void log_text_add(struct log_text *text, const char *s)
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

static void PRINTF_FORMAT(2, 3) add_format(struct log_text *text, const char *format, ...)
{
    char piece[256];
    va_list args;

    va_start(args, format);
    vsnprintf(piece, sizeof(piece), format, args);
    va_end(args);
    log_text_add(text, piece);
}

static void add_head(struct log_text *text, const struct log_entry *entry)
{
    const char *level = log_level_name(entry->line->level);

    if (entry->plain != NULL) {
        log_text_add(text, entry->plain);
        add_format(text, ": [%s] ", level);
        return;
    }
    log_stamp_update(entry->stamp);
    add_format(text, "%s [%s] %d#0: ", entry->stamp->date, level, (int)entry->pid);
}

static void add_relayed(struct log_text *text, const struct log_relay *relay)
{
    add_format(text,
        ", bytes from/to client:%" PRIu64 "/%" PRIu64 ", bytes from/to upstream:%" PRIu64
        "/%" PRIu64,
        relay->from_client, relay->to_client, relay->from_upstream, relay->to_upstream);
}

/* Adds what nginx calls the line's context: what was done, the addresses, and bytes. */
static void add_context(struct log_text *text, const struct log_line *line)
{
    const char *action = line->action != NULL ? line->action : line->relay.action;

    if (action != NULL)
        add_format(text, " while %s", action);
    if (line->client != NULL) {
        log_text_add(text, ", client: ");
        log_text_add(text, line->client);
    }
    if (line->server != NULL) {
        log_text_add(text, ", server: ");
        log_text_add(text, line->server);
    }
    if (line->upstream != NULL) {
        log_text_add(text, ", upstream: \"");
        log_text_add(text, line->upstream);
        log_text_add(text, "\"");
    }
    if (line->relay.action != NULL)
        add_relayed(text, &line->relay);
}

static void add_place(struct log_entry *entry)
{
    const struct log_place *place = entry->line->place;

    entry->place = entry->text.n;
    log_text_add(&entry->text, " in ");
    log_text_add(&entry->text, place->file);
    add_format(&entry->text, ":%u:%u", place->line, place->column);
}

const struct log_text *log_text_make(struct log_entry *entry)
{
    struct log_text *text = &entry->text;
    const struct log_line *line = entry->line;
    char reason[128];

    if (entry->has_text)
        return text;
    entry->has_text = true;
    text->n = 0;
    add_head(text, entry);
    entry->head = text->n;
    if (line->connection != 0)
        add_format(text, "*%llu ", (unsigned long long)line->connection);
    log_text_add(text, entry->message);
    if (line->error != 0) /* the GNU function, which may answer with a constant */
        add_format(
            text, " (%d: %s)", line->error, os_error_text(line->error, reason, sizeof(reason)));
    if (line->place != NULL)
        add_place(entry);
    if (!line->named)
        add_context(text, line);
    assert(text->n < sizeof(text->bytes));
    text->bytes[text->n++] = '\n';
    return text;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The forms of a line: text in nginx's shape, and JSON, one object. Bytes that a terminal would act
 * on are escaped. Text without room is left out, but for the newline; in JSON long values are cut
 * within their strings, so that the object is always whole: the members after the message are made
 * first. Only log_stamp_set() calls strftime() for a local time. */
#include "base/log_line.h"

#include "base/json.h"
#include "os/process.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Bytes of a JSON value: with all values as long as possible a message still has some 800 bytes. */
#define JSON_VALUE_MAX 500

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

void log_stamp_set(struct log_stamp *stamp, time_t now)
{
    struct tm tm;

    if (now == stamp->second)
        return;
    localtime_r(&now, &tm);
    strftime(stamp->date, sizeof(stamp->date), "%Y/%m/%d %H:%M:%S", &tm);
    strftime(stamp->syslog, sizeof(stamp->syslog), "%b %e %H:%M:%S", &tm);
    strftime(stamp->rfc5424, sizeof(stamp->rfc5424), "%Y-%m-%dT%H:%M:%S", &tm);
    strftime(stamp->zone, sizeof(stamp->zone), "%z", &tm);
    memmove(stamp->zone + 4, stamp->zone + 3, 3); /* +0100 becomes +01:00 */
    stamp->zone[3] = ':';
    stamp->second = now;
}

void log_stamp_update(struct log_stamp *stamp)
{
    log_stamp_set(stamp, time(NULL));
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

static void add_text_head(struct log_text *text, const struct log_entry *entry)
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

/* Adds the line's context, as nginx calls the action, the addresses, and bytes. */
static void add_text_context(struct log_text *text, const struct log_line *line)
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
        add_format(text,
            ", bytes from/to client:%" PRIu64 "/%" PRIu64 ", bytes from/to upstream:%" PRIu64
            "/%" PRIu64,
            line->relay.from_client, line->relay.to_client, line->relay.from_upstream,
            line->relay.to_upstream);
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
    add_text_head(text, entry);
    entry->head = text->n;
    if (line->connection != 0)
        add_format(text, "*%llu ", (unsigned long long)line->connection);
    log_text_add(text, entry->message);
    if (line->error != 0)
        add_format(
            text, " (%d: %s)", line->error, os_error_text(line->error, reason, sizeof(reason)));
    entry->place = text->n;
    if (line->place != NULL) {
        log_text_add(text, " in ");
        log_text_add(text, line->place->file);
        add_format(text, ":%u:%u", line->place->line, line->place->column);
    }
    if (!line->named)
        add_text_context(text, line);
    assert(text->n < sizeof(text->bytes));
    text->bytes[text->n++] = '\n';
    return text;
}

/* Adds the value between quotes, cut to `most` bytes in all. */
static void add_json_string(struct log_text *json, const char *value, size_t most)
{
    char c[JSON_ESCAPED_MAX];
    size_t end = json->n + most - 1; /* last place for the closing quote */

    assert(most >= 2 && json->n + most <= sizeof(json->bytes));
    json->bytes[json->n++] = '"';
    while (*value != '\0') {
        size_t n = json_escape(&value, c);

        if (n > end - json->n)
            break;
        memcpy(json->bytes + json->n, c, n);
        json->n += n;
    }
    json->bytes[json->n++] = '"';
}

static void add_json_member(struct log_text *json, const char *name, const char *value)
{
    if (value == NULL)
        return;
    add_format(json, ",\"%s\":", name);
    add_json_string(json, value, JSON_VALUE_MAX);
}

static void add_json_tail(struct log_text *tail, const struct log_line *line)
{
    char reason[128];

    if (line->error != 0) {
        add_format(tail, ",\"errno\":%d", line->error);
        add_json_member(tail, "error", os_error_text(line->error, reason, sizeof(reason)));
    }
    add_json_member(tail, "client", line->client);
    add_json_member(tail, "server", line->server);
    add_json_member(tail, "upstream", line->upstream);
    add_json_member(tail, "protocol", line->protocol);
    if (line->place != NULL) {
        add_json_member(tail, "file", line->place->file);
        add_format(tail, ",\"line\":%u,\"column\":%u", line->place->line, line->place->column);
    }
    memcpy(tail->bytes + tail->n, "}\n", 2);
    tail->n += 2;
}

static void add_json_head(struct log_text *json, const struct log_entry *entry)
{
    const struct log_line *line = entry->line;
    struct timespec now;
    struct tm tm;
    char time[32];

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%S", &tm);
    add_format(json, "{\"time\":\"%s.%03dZ\",\"level\":\"%s\",\"pid\":%d", time,
        (int)(now.tv_nsec / 1000000), log_level_name(line->level), (int)entry->pid);
    if (line->connection != 0)
        add_format(json, ",\"connection\":%llu", (unsigned long long)line->connection);
}

const struct log_text *log_json_make(struct log_entry *entry)
{
    struct log_text tail, *out = &entry->json;

    if (entry->has_json)
        return out;
    entry->has_json = true;
    out->n = tail.n = 0;
    add_json_tail(&tail, entry->line);
    add_json_head(out, entry);
    log_text_add(out, ",\"message\":");
    add_json_string(out, entry->message, sizeof(out->bytes) - out->n - tail.n);
    assert(out->n + tail.n <= sizeof(out->bytes));
    memcpy(out->bytes + out->n, tail.bytes, tail.n);
    out->n += tail.n;
    return out;
}

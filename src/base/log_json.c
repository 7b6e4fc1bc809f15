/* SPDX-License-Identifier: BSD-2-Clause */
/* The JSON form of a line: one object. Long values are cut within their strings, so that the object
 * is always whole: the members after the message are made first, and their room is kept free. */
#include "base/json.h"
#include "base/log_line.h"
#include "os/process.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* With all values as long as they may be a message still has some 800 bytes. */
#define VALUE_MAX 500
#define TAIL_MAX (6 * (VALUE_MAX + 20) + 90)

struct piece {
    char *bytes;
    size_t n, size;
};

static void add_text(struct piece *piece, const char *s)
{
    size_t n = strlen(s);

    if (n > piece->size - piece->n)
        return;
    memcpy(piece->bytes + piece->n, s, n);
    piece->n += n;
}

/* Adds the value between quotes, cut so that it takes at most `most` bytes. */
static void add_string(struct piece *piece, const char *value, size_t most)
{
    char c[JSON_ESCAPED_MAX];
    size_t end = piece->n + most - 1; /* last place for the closing quote */

    assert(most >= 2 && piece->n + most <= piece->size);
    piece->bytes[piece->n++] = '"';
    while (*value != '\0') {
        size_t n = json_escape(&value, c);

        if (n > end - piece->n)
            break;
        memcpy(piece->bytes + piece->n, c, n);
        piece->n += n;
    }
    piece->bytes[piece->n++] = '"';
}

static void add_member(struct piece *piece, const char *name, const char *value)
{
    if (value == NULL)
        return;
    add_text(piece, ",\"");
    add_text(piece, name);
    add_text(piece, "\":");
    add_string(piece, value, VALUE_MAX);
}

static void add_tail(struct piece *tail, const struct log_line *line)
{
    char number[32], reason[128];

    if (line->error != 0) {
        snprintf(number, sizeof(number), ",\"errno\":%d", line->error);
        add_text(tail, number);
        add_member(tail, "error", os_error_text(line->error, reason, sizeof(reason)));
    }
    add_member(tail, "client", line->client);
    add_member(tail, "server", line->server);
    add_member(tail, "upstream", line->upstream);
    add_member(tail, "protocol", line->protocol);
    if (line->place != NULL) {
        add_member(tail, "file", line->place->file);
        snprintf(number, sizeof(number), ",\"line\":%u", line->place->line);
        add_text(tail, number);
        snprintf(number, sizeof(number), ",\"column\":%u", line->place->column);
        add_text(tail, number);
    }
    add_text(tail, "}\n");
}

static void add_head(struct piece *out, const struct log_entry *entry)
{
    const struct log_line *line = entry->line;
    char time[32], head[128];
    struct timespec now;
    struct tm tm;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(head, sizeof(head), "{\"time\":\"%s.%03dZ\",\"level\":\"%s\",\"pid\":%d", time,
        (int)(now.tv_nsec / 1000000), log_level_name(line->level), (int)entry->pid);
    add_text(out, head);
    if (line->connection != 0) {
        snprintf(head, sizeof(head), ",\"connection\":%llu", (unsigned long long)line->connection);
        add_text(out, head);
    }
}

const struct log_text *log_json_make(struct log_entry *entry)
{
    char bytes[TAIL_MAX];
    struct piece tail = { .bytes = bytes, .size = sizeof(bytes) };
    struct piece out = { .bytes = entry->json.bytes, .size = sizeof(entry->json.bytes) };

    if (entry->has_json)
        return &entry->json;
    entry->has_json = true;
    add_tail(&tail, entry->line);
    add_head(&out, entry);
    add_text(&out, ",\"message\":");
    add_string(&out, entry->message, out.size - out.n - tail.n);
    assert(out.n + tail.n <= out.size);
    memcpy(out.bytes + out.n, tail.bytes, tail.n);
    entry->json.n = out.n + tail.n;
    return &entry->json;
}

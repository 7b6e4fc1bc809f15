/* SPDX-License-Identifier: BSD-2-Clause */
/* The forms of a log line with arbitrary input of peers: a choosing byte, a byte for the error, and
 * texts with NUL at the end: message, client, server, upstream, protocol. */
#include "fuzz/fuzz.h"

#include "base/json.h"
#include "base/log_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS 5

static void require(bool holds, const char *what, const struct log_text *text)
{
    if (holds)
        return;
    fprintf(stderr, "%s: %.*s\n", what, (int)text->n, text->bytes);
    abort();
}

/* A single line, without bytes acted on by a terminal. */
static void check_bytes(const struct log_text *text)
{
    unsigned char before = 0;

    require(text->n > 0 && text->n <= sizeof(text->bytes), "size", text);
    for (size_t i = 0; i + 1 < text->n; i++) {
        unsigned char c = (unsigned char)text->bytes[i];

        require(c >= 0x20 && c != 0x7f, "control character", text);
        require(before != 0xc2 || c < 0x80 || c >= 0xa0, "C1 control character", text);
        before = c;
    }
    require(text->bytes[text->n - 1] == '\n', "no newline", text);
}

static void check_utf8(const struct log_text *text)
{
    static char copy[LOG_LINE_MAX + 1];
    const char *rest = copy;

    memcpy(copy, text->bytes, text->n);
    copy[text->n] = '\0';
    while (*rest != '\0') {
        char c[JSON_ESCAPED_MAX];
        size_t n = json_escape(&rest, c);

        require(n != 6 || memcmp(c, "\\ufffd", 6) != 0, "no UTF-8", text);
    }
}

static void check_json(const struct log_text *text, const struct log_line *line)
{
    struct json_value object = json_parse(text->bytes, text->n);

    check_utf8(text);
    require(object.text != NULL && *object.text == '{', "no object", text);
    require(json_member(object, "message").text != NULL, "no message", text);
    require((json_member(object, "client").text != NULL) == (line->client != NULL), "client", text);
    require((json_member(object, "protocol").text != NULL) == (line->protocol != NULL), "protocol",
        text);
    require(json_integer(json_member(object, "errno"), 0) == line->error, "errno", text);
}

/* Takes the next text; NULL behind the last. */
static const char *next_character(const char **p, const char *end)
{
    const char *text = *p;

    if (text >= end)
        return NULL;
    *p += strlen(text) + 1;
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct log_entry entry;
    struct log_line line = { .level = LEVEL_INFO };
    struct log_stamp stamp = { .second = -1 };
    const char *texts[TEXTS], *rest, *end;
    char *copy = malloc(size + 1);

    if (size < 2 || copy == NULL) {
        free(copy);
        return 0;
    }
    memcpy(copy, data, size);
    copy[size] = '\0';
    rest = copy + 2;
    end = copy + size;
    for (int i = 0; i < TEXTS; i++)
        texts[i] = next_character(&rest, end);
    line.level = (enum log_level)(data[0] % 8);
    line.connection = data[0] / 8;
    line.error = data[1];
    line.client = texts[1];
    line.server = texts[2];
    line.upstream = texts[3];
    line.protocol = texts[4];

    entry.line = &line;
    entry.stamp = &stamp;
    entry.has_text = entry.has_json = false;
    snprintf(entry.message, sizeof(entry.message), "%s", texts[0] != NULL ? texts[0] : "");
    check_bytes(log_text_make(&entry));
    check_bytes(log_json_make(&entry));
    check_json(log_json_make(&entry), &line);
    free(copy);
    return 0;
}

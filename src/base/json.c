/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes JSON into memory that grows. Commas and the ends of levels are put by themselves; the
 * caller closes what it has opened, which is asserted. */
#include "base/json.h"

#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MIN 512

void json_begin(struct json *json)
{
    *json = (struct json) { .text = NULL };
}

char *json_end(struct json *json, size_t *n)
{
    char *text = json->text;

    assert(json->depth == 0);
    *n = json->n;
    if (json->failed || text == NULL) {
        free(text);
        text = NULL;
    } else {
        text[(*n)++] = '\n';
        text[*n] = '\0';
    }
    json_begin(json);
    return text;
}

/* Appends, and leaves room for two bytes more, which end the line. */
static void append_bytes(struct json *json, const char *bytes, size_t n)
{
    size_t size = json->size > 0 ? json->size : SIZE_MIN;
    char *larger;

    while (size - json->n <= n + 1)
        size *= 2;
    if (json->failed)
        return;
    if (size > json->size) {
        larger = realloc(json->text, size);
        if (larger == NULL) {
            json->failed = true;
            return;
        }
        json->text = larger;
        json->size = size;
    }
    memcpy(json->text + json->n, bytes, n);
    json->n += n;
}

static void append_text(struct json *json, const char *text)
{
    append_bytes(json, text, strlen(text));
}

/* Returns the code of a control character (below U+0020, U+007F to U+009F), or 0. */
static unsigned control_code(const unsigned char *s, size_t n)
{
    if (n == 1)
        return *s < 0x20 || *s == 0x7f ? *s : 0;
    return n == 2 && s[0] == 0xc2 && s[1] < 0xa0 ? s[1] : 0;
}

static size_t escape_control(unsigned code, char out[JSON_ESCAPED_MAX])
{
    static const char hex[] = "0123456789abcdef";
    const char letter = code == '\n' ? 'n' : code == '\t' ? 't' : code == '\r' ? 'r' : 'u';

    out[0] = '\\';
    out[1] = letter;
    if (letter != 'u')
        return 2;
    out[2] = out[3] = '0';
    out[4] = hex[code >> 4];
    out[5] = hex[code & 15];
    return 6;
}

size_t json_escape(const char **s, char out[JSON_ESCAPED_MAX])
{
    const unsigned char *c = (const unsigned char *)*s;
    size_t n = utf8_character(*s);
    unsigned code = control_code(c, n);

    *s += n > 0 ? n : 1;
    if (n == 0) {
        memcpy(out, "\\ufffd", 6);
        return 6;
    }
    if (code != 0)
        return escape_control(code, out);
    if (*c == '"' || *c == '\\') {
        out[0] = '\\';
        out[1] = (char)*c;
        return 2;
    }
    memcpy(out, c, n);
    return n;
}

static void append_string(struct json *json, const char *value)
{
    char c[JSON_ESCAPED_MAX];

    append_text(json, "\"");
    while (*value != '\0') {
        size_t n = json_escape(&value, c);

        append_bytes(json, c, n);
    }
    append_text(json, "\"");
}

/* Writes the comma and the key before a value. */
static void begin_value(struct json *json, const char *key)
{
    if (json->comma)
        append_text(json, ",");
    json->comma = true;
    if (key == NULL)
        return;
    append_string(json, key);
    append_text(json, ":");
}

static void open_level(struct json *json, const char *key, const char *start, char end)
{
    assert(json->depth < JSON_DEPTH_MAX);
    begin_value(json, key);
    append_text(json, start);
    json->comma = false;
    json->ends[json->depth++] = end;
}

void json_object(struct json *json, const char *key)
{
    open_level(json, key, "{", '}');
}

void json_array(struct json *json, const char *key)
{
    open_level(json, key, "[", ']');
}

void json_close(struct json *json)
{
    assert(json->depth > 0);
    append_bytes(json, &json->ends[--json->depth], 1);
    json->comma = true;
}

void json_string(struct json *json, const char *key, const char *value)
{
    if (value == NULL) {
        json_null(json, key);
        return;
    }
    begin_value(json, key);
    append_string(json, value);
}

void json_number(struct json *json, const char *key, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, value);
    begin_value(json, key);
    append_text(json, text);
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin_value(json, key);
    append_text(json, value ? "true" : "false");
}

void json_null(struct json *json, const char *key)
{
    begin_value(json, key);
    append_text(json, "null");
}

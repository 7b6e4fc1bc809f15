/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/json.h"

#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MIN 512

void fb_json_begin(struct fb_json *json)
{
    *json = (struct fb_json) { .text = NULL };
}

char *fb_json_end(struct fb_json *json, size_t *n)
{
    char *text = json->text;

    assert(json->depth == 0);
    *n = json->n;
    if (json->failed || text == NULL) {
        free(text);
        text = NULL;
    } else {
        text[json->n] = '\n';
        ++*n;
    }
    fb_json_begin(json);
    return text;
}

/* There is always room for one byte more, which ends the line. */
static void append(struct fb_json *json, const char *bytes, size_t n)
{
    size_t size = json->size > 0 ? json->size : SIZE_MIN;
    char *larger;

    while (size - json->n <= n)
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

static void append_text(struct fb_json *json, const char *text)
{
    append(json, text, strlen(text));
}

static void append_control(struct fb_json *json, unsigned char c)
{
    char text[8];

    switch (c) {
    case '\n':
        append_text(json, "\\n");
        break;
    case '\t':
        append_text(json, "\\t");
        break;
    case '\r':
        append_text(json, "\\r");
        break;
    default:
        snprintf(text, sizeof(text), "\\u%04x", c);
        append_text(json, text);
        break;
    }
}

static void append_string(struct fb_json *json, const char *value)
{
    const unsigned char *s = (const unsigned char *)value;
    size_t n;

    append_text(json, "\"");
    for (; *s != '\0'; s += n > 0 ? n : 1) {
        n = fb_utf8_character((const char *)s);
        if (n == 0)
            append_text(json, "\\ufffd");
        else if (*s < 0x20 || *s == 0x7f)
            append_control(json, *s);
        else if (*s == '"' || *s == '\\')
            append(json, *s == '"' ? "\\\"" : "\\\\", 2);
        else
            append(json, (const char *)s, n);
    }
    append_text(json, "\"");
}

/* What stands before a value. */
static void begin(struct fb_json *json, const char *key)
{
    if (json->comma)
        append_text(json, ",");
    json->comma = true;
    if (key == NULL)
        return;
    append_string(json, key);
    append_text(json, ":");
}

static void open_level(struct fb_json *json, const char *key, const char *start, char end)
{
    assert(json->depth < FB_JSON_DEPTH_MAX);
    begin(json, key);
    append_text(json, start);
    json->comma = false;
    json->ends[json->depth++] = end;
}

void fb_json_object(struct fb_json *json, const char *key)
{
    open_level(json, key, "{", '}');
}

void fb_json_array(struct fb_json *json, const char *key)
{
    open_level(json, key, "[", ']');
}

void fb_json_close(struct fb_json *json)
{
    assert(json->depth > 0);
    append(json, &json->ends[--json->depth], 1);
    json->comma = true;
}

void fb_json_string(struct fb_json *json, const char *key, const char *value)
{
    if (value == NULL) {
        fb_json_null(json, key);
        return;
    }
    begin(json, key);
    append_string(json, value);
}

void fb_json_number(struct fb_json *json, const char *key, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, value);
    begin(json, key);
    append_text(json, text);
}

void fb_json_bool(struct fb_json *json, const char *key, bool value)
{
    begin(json, key);
    append_text(json, value ? "true" : "false");
}

void fb_json_null(struct fb_json *json, const char *key)
{
    begin(json, key);
    append_text(json, "null");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON (RFC 8259), as much of it as one line to another process takes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FB_JSON_DEPTH_MAX 16

/* Writing (json.c). Memory that runs out shows at the end. A key is NULL for what has none: the value
 * itself and the elements of an array. */
struct fb_json {
    char *text;
    size_t n, size;
    bool failed;
    bool comma; /* before what comes next */
    unsigned depth;
    char ends[FB_JSON_DEPTH_MAX];
};

void fb_json_begin(struct fb_json *json);
/* Ends the line. It is the caller's to free; NULL without memory. */
char *fb_json_end(struct fb_json *json, size_t *n);

void fb_json_object(struct fb_json *json, const char *key);
void fb_json_array(struct fb_json *json, const char *key);
/* Closes the object or array that was opened last. */
void fb_json_close(struct fb_json *json);
/* What is no UTF-8 becomes U+FFFD; NULL becomes null. */
void fb_json_string(struct fb_json *json, const char *key, const char *value);
void fb_json_number(struct fb_json *json, const char *key, int64_t value);
void fb_json_bool(struct fb_json *json, const char *key, bool value);
void fb_json_null(struct fb_json *json, const char *key);

/* The next character of a string as it stands between quotes, of at most so many bytes, and how many
 * they are; *s, which is not at its end, moves behind it. A byte that is no UTF-8 becomes U+FFFD, and
 * what a terminal would act on is escaped. */
#define FB_JSON_ESCAPED_MAX 6
size_t fb_json_escape(const char **s, char out[FB_JSON_ESCAPED_MAX]);

/* Reading (json_read.c): a value is a piece of the text that it was found in. */
struct fb_json_value {
    const char *text; /* NULL: there is none */
    size_t n;
};

/* The text as one value; none where it is not well-formed, or deeper than FB_JSON_DEPTH_MAX. */
struct fb_json_value fb_json_parse(const char *text, size_t n);
/* The first member of that name; none if there is none, or it is no object. */
struct fb_json_value fb_json_member(struct fb_json_value object, const char *name);
/* The element of an array behind `last`, which is none for the first; none behind the last. */
struct fb_json_value fb_json_next(struct fb_json_value array, struct fb_json_value last);
/* The string, cut to `size` with its NUL; false, and "", if it is no string. */
bool fb_json_text(struct fb_json_value value, char *text, size_t size);
/* The whole number, or `otherwise`. */
int64_t fb_json_integer(struct fb_json_value value, int64_t otherwise);
bool fb_json_is_true(struct fb_json_value value);

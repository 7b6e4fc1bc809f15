/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON (RFC 8259), as far as one line to another process needs it. Writing never fails in
 * between: memory that runs out shows at the end. Reading makes no tree: values are pieces of
 * the text, and text that is not well-formed has none. Nothing here asserts on a text that is
 * read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FB_JSON_DEPTH_MAX 16

/* Writing (json.c). A key is NULL where there is none: for the value itself and for elements of
 * an array. */
struct fb_json {
    char *text;
    size_t n, size;
    bool failed;
    bool comma; /* before what comes next */
    unsigned depth;
    char ends[FB_JSON_DEPTH_MAX];
};

void fb_json_begin(struct fb_json *json);
/* Ends the line, which the caller frees; NULL without memory. */
char *fb_json_end(struct fb_json *json, size_t *n);

void fb_json_object(struct fb_json *json, const char *key);
void fb_json_array(struct fb_json *json, const char *key);
/* Closes the object or array that was opened last. */
void fb_json_close(struct fb_json *json);
/* Writes a string. Bytes that are no UTF-8 become U+FFFD; NULL becomes null. */
void fb_json_string(struct fb_json *json, const char *key, const char *value);
void fb_json_number(struct fb_json *json, const char *key, int64_t value);
void fb_json_bool(struct fb_json *json, const char *key, bool value);
void fb_json_null(struct fb_json *json, const char *key);

/* Escapes the next character of a string as it stands between quotes, and returns how many bytes
 * that is; *s, which is not at its end, moves behind it. A byte that is no UTF-8 becomes U+FFFD,
 * and characters that a terminal would act on are escaped. */
#define FB_JSON_ESCAPED_MAX 6
size_t fb_json_escape(const char **s, char out[FB_JSON_ESCAPED_MAX]);

/* Reading (json_read.c): a value is a piece of the text that it was found in. */
struct fb_json_value {
    const char *text; /* NULL: there is none */
    size_t n;
};

/* Returns the text as one value; none where it is not well-formed, or deeper than
 * FB_JSON_DEPTH_MAX. */
struct fb_json_value fb_json_parse(const char *text, size_t n);
/* Returns the first member of that name; none if there is none, or `object` is no object. */
struct fb_json_value fb_json_member(struct fb_json_value object, const char *name);
/* Returns the element of an array behind `last`, which is none for the first; none behind the
 * last. */
struct fb_json_value fb_json_next(struct fb_json_value array, struct fb_json_value last);
/* Copies a string, cut to `size` with its NUL; false, and "", if the value is no string. */
bool fb_json_text(struct fb_json_value value, char *text, size_t size);
/* Returns a whole number, or `otherwise` if the value is none. */
int64_t fb_json_integer(struct fb_json_value value, int64_t otherwise);
bool fb_json_is_true(struct fb_json_value value);

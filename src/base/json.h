/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON (RFC 8259) for messages of one line between processes. A writer reports a lack of memory
 * only at the end, in json_end(). A reader builds no tree: values are parts of the text, and
 * malformed text has no values. Never asserts on a read text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH_MAX 16

/* Writing. The key of the outermost value, and of elements of an array, is NULL. */
struct json {
    char *text;
    size_t n, size;
    bool failed;
    bool comma; /* before what comes next */
    unsigned depth;
    char ends[JSON_DEPTH_MAX];
};

void json_begin(struct json *json);
/* Ends the line of *n bytes, with a NUL behind it; the caller frees it. NULL without memory. */
char *json_end(struct json *json, size_t *n);
void json_object(struct json *json, const char *key);
void json_array(struct json *json, const char *key);
/* Closes the object or array that was opened last. */
void json_close(struct json *json);
/* Writes a string. Bytes that are no UTF-8 become U+FFFD; NULL becomes null. */
void json_string(struct json *json, const char *key, const char *value);
void json_number(struct json *json, const char *key, int64_t value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

/* Escapes the next character of a string for the place between quotes, moves *s, which is not at
 * its end, behind the character, and returns the number of bytes. A byte that is no UTF-8 becomes
 * U+FFFD, and characters that a terminal would act on are escaped. */
#define JSON_ESCAPED_MAX 6
size_t json_escape(const char **s, char out[JSON_ESCAPED_MAX]);

/* Reading: a value is a piece of its text. */
struct json_value {
    const char *text; /* NULL: there is none */
    size_t n;
};

/* Returns the text as one value; none if malformed, or deeper than JSON_DEPTH_MAX. */
struct json_value json_parse(const char *text, size_t n);
/* Returns the first member with the name, or no value; `object` may be any value. */
struct json_value json_member(struct json_value object, const char *name);
/* Returns the value of the object's member after that of `last` (no value: the first member), with
 * its name, cut to `size`; or no value. */
struct json_value json_next_member(
    struct json_value object, struct json_value last, char *name, size_t size);
/* Returns the element of an array after `last` (no value: the first element), or no value. */
struct json_value json_next(struct json_value array, struct json_value last);
/* Copies a string, cut to `size` with the NUL; false, and "", if the value is no string. */
bool json_text(struct json_value value, char *text, size_t size);
/* Returns a whole number, or `otherwise` if the value is none. */
int64_t json_integer(struct json_value value, int64_t otherwise);
bool json_is_true(struct json_value value);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Templates for replies of the control socket as text. */
#pragma once

#include "base/json.h"

#include <stdbool.h>
#include <stdio.h>

#define REPLY_TEXT_MAX 1024 /* bytes of a text, with the NUL */
#define REPLY_NAME_MAX 63   /* bytes of a member's name */

/* Formats a time in the two largest units: "2d 3h". */
void reply_format_age(int64_t ms, char text[REPLY_TEXT_MAX]);
/* Writes the template, in which "{MEMBER}" stands for a string or a number of the object,
 * "{MEMBER:8}" and "{MEMBER:-8}" for a right- or left-aligned column, "{MEMBER|age}" for
 * milliseconds in their two largest units, "{MEMBER|below}" and "{MEMBER|within}" for microseconds
 * and milliseconds as a bound, "{MEMBER|size}" for bytes, and "{MEMBER|date}" for seconds since the
 * epoch. */
void reply_write(FILE *out, struct json_value object, const char *template);
/* Writes the template for all objects of an array. */
void reply_write_each(FILE *out, struct json_value array, const char *template);
/* Writes the members that are above 0, in a line with the head before them; nothing without any. */
void reply_write_counts(
    FILE *out, struct json_value object, const char *const names[], size_t n, const char *head);
bool reply_has(struct json_value object, const char *name);
/* Returns the width of a column: of the heading, or of the longest text. */
int reply_column_width(struct json_value array, const char *member, const char *heading);

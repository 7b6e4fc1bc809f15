/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON formats of lines: the places of variables without quotes, and the ready format "json". */
#pragma once

#include "text/template.h"

#include <stdbool.h>
#include <stddef.h>

/* Sets a flag for each part: true for a variable that is a whole value without quotes. All are
 * false where the format does not begin as an object or an array. */
void json_format_find_values(const struct template_part *parts, unsigned part_n, bool *values);
/* Whether the n bytes are a value as they are: a number, true, false or null. */
bool json_format_is_value(const char *s, size_t n);

#define JSON_FORMAT_NAME "json"
extern const char json_format_text[];

/* SPDX-License-Identifier: BSD-2-Clause */
/* Text for people, made by a template from members of a JSON reply. The daemon may be of a
 * different version: a missing member is printed as "-" and is never an error. */
#pragma once

#include "base/json.h"

#include <stdio.h>

/* Writes the template, in which "{MEMBER}" stands for a string or a number of the object,
 * "{MEMBER:8}" and "{MEMBER:-8}" for a right- or left-aligned column, "{MEMBER|age}" for
 * milliseconds in their two largest units, and "{MEMBER|below}" for microseconds as a bound. */
void reply_text(FILE *out, struct json_value object, const char *template);
/* Writes the template for each object of an array. */
void reply_text_each(FILE *out, struct json_value array, const char *template);

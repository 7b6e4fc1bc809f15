/* SPDX-License-Identifier: BSD-2-Clause */
/* Regular expressions, of the library PCRE2. They are compiled while the configuration is read, and
 * run without machine code of their own, which a worker's sandbox would not let be made. A match
 * that takes too many steps ends as a failure, so that no expression holds a worker up.
 * regex_none.c stands for a build without the library. */
#pragma once

#include "base/arena.h"
#include "text/template.h"

#include <stdbool.h>

#define REGEX_ERROR_TEXT 160
#define REGEX_NAMES_MAX 32 /* named captures of one expression */

/* Limits of steps and memory of a match. */
#define REGEX_STEPS_MOST 50000
#define REGEX_KIB_MOST 4096

struct regex;

/* Whether this build has the library. */
bool regex_built(void);
/* Compiles an expression into the arena. NULL, after filling in what is wrong with it. */
const struct regex *regex_compile(
    struct arena *arena, const char *text, char error[REGEX_ERROR_TEXT]);
/* How many captures have names, and the name of one. */
unsigned regex_names(const struct regex *regex);
const char *regex_name(const struct regex *regex, unsigned i);
/* Runs it on a text: 1, and *captures and named[] have what was captured, lent as the text is; 0:
 * it does not match; -1, after a line to the log, where it took too much. */
int regex_match(const struct regex *regex, struct fb_conn *conn, const char *p, size_t n,
    struct captures *captures, struct value named[REGEX_NAMES_MAX]);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Regular expressions of PCRE2, compiled with the configuration, and run without JIT, because a
 * worker's sandbox forbids new machine code. A match beyond the limit of steps fails, so that no
 * expression blocks a worker. regex_none.c: a build without the library. */
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

/* Compiles an expression into the arena. NULL, after filling in the error. */
const struct regex *regex_compile(
    struct arena *arena, const char *text, char error[REGEX_ERROR_TEXT]);
/* The number of captures with names, and the name of a capture. */
unsigned regex_names(const struct regex *regex);
const char *regex_name(const struct regex *regex, unsigned i);
/* Matches a text: 1, with captures lent like the text; 0: no match; -1, after a log line, beyond
 * the limits of steps or memory. */
int regex_match(const struct regex *regex, struct fb_conn *conn, const char *p, size_t n,
    struct captures *captures, struct value named[REGEX_NAMES_MAX]);

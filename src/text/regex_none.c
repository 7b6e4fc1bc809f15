/* SPDX-License-Identifier: BSD-2-Clause */
/* No regular expressions, in a build without PCRE2: the configuration has none. */
#include "text/regex.h"

#include <stdio.h>
#include <stdlib.h>

const struct regex *regex_compile(
    struct arena *arena, const char *text, char error[REGEX_ERROR_TEXT])
{
    (void)arena;
    (void)text;
    snprintf(error, REGEX_ERROR_TEXT,
        "regular expressions need PCRE2, which this build of forkbeard lacks");
    return NULL;
}

unsigned regex_names(const struct regex *regex)
{
    (void)regex;
    return 0;
}

const char *regex_name(const struct regex *regex, unsigned i)
{
    (void)regex;
    (void)i;
    abort();
}

int regex_match(const struct regex *regex, struct fb_conn *conn, const char *p, size_t n,
    struct captures *captures, struct value named[REGEX_NAMES_MAX])
{
    (void)regex;
    (void)conn;
    (void)p;
    (void)n;
    (void)captures;
    (void)named;
    abort();
}

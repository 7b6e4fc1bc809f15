/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares a server's answer with what `match` expects. */
#include "features/health/match.h"

#include "text/regex.h"

#include <assert.h>
#include <string.h>

bool match_expects(const struct match *match)
{
    return match->expect.p != NULL || match->regex != NULL;
}

static enum match_result test_bytes(const struct match_bytes *expect, const char *p, size_t n)
{
    size_t both = n < expect->n ? n : expect->n;

    assert(expect->n > 0);
    if (memcmp(p, expect->p, both) != 0)
        return MATCH_NEVER;
    return both == expect->n ? MATCH_FOUND : MATCH_MORE;
}

static enum match_result test_regex(
    const struct regex *regex, struct fb_conn *conn, const char *p, size_t n)
{
    struct value named[REGEX_NAMES_MAX];
    struct captures captures;

    switch (regex_match(regex, conn, p, n, &captures, named)) {
    case 1:
        return MATCH_FOUND;
    case 0:
        return MATCH_MORE;
    default:
        return MATCH_NEVER;
    }
}

enum match_result match_test(
    const struct match *match, struct fb_conn *conn, const char *p, size_t n)
{
    assert(n > 0 && match_expects(match));
    assert(match->expect.p == NULL || match->regex == NULL);
    if (match->regex != NULL)
        return test_regex(match->regex, conn, p, n);
    return test_bytes(&match->expect, p, n);
}

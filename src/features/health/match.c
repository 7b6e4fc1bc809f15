/* SPDX-License-Identifier: BSD-2-Clause */
/* `match`: reads the bytes to send and the expected reply, and compares a server's reply. */
#include "features/health/match.h"

#include "base/check.h"
#include "base/compiler.h"
#include "features/features.h"
#include "features/health/health.h"
#include "settings/blocks.h"
#include "settings/entries.h"
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

struct match_reading {
    struct entries entries;
    struct match *match;
};

const struct match *match_find(const struct match_list *list, const char *name)
{
    const struct match *match;

    STAILQ_FOREACH (match, list, link)
        if (strcmp(match->name, name) == 0)
            return match;
    return NULL;
}

/* Returns the value of a hexadecimal digit, or -1. */
static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *digit = c != '\0' ? strchr(digits, c) : NULL;

    return digit != NULL ? (int)(digit - digits) % 16 : -1;
}

/* Copies a text with escapes like "\x80" for a byte; -1 after a report. */
static int read_match_bytes(
    struct apply *apply, const struct conf_word *word, struct match_bytes *bytes)
{
    const char *text = word->text;
    char *p = apply_alloc(apply, strlen(text) + 1);

    *bytes = (struct match_bytes) { .p = p };
    if (p == NULL)
        return -1;
    while (*text != '\0') {
        int high, low;

        if (text[0] != '\\' || text[1] != 'x') {
            p[bytes->n++] = *text++;
            continue;
        }
        high = digit_of(text[2]);
        low = high != -1 ? digit_of(text[3]) : -1;
        if (low == -1)
            return report_error(apply->report, word,
                "invalid text \"%s\": expected two hexadecimal digits after \"\\x\"", word->text);
        p[bytes->n++] = (char)(high * 16 + low);
        text += 4;
    }
    if (bytes->n > 0)
        return 0;
    return report_error(apply->report, word, "invalid text \"\": expected at least one byte");
}

/* Reads an expression; `word` has "~", or "~*" where letters of either case are the same. */
static void read_regex(
    struct apply *apply, struct match *match, const struct conf_word *word, const char *text)
{
    bool any_case = strcmp(word->text, "~*") == 0;
    char error[REGEX_ERROR_TEXT] = "it begins with \"*\"";

    if (!any_case && strcmp(word->text, "~") != 0) {
        report_error(apply->report, word,
            "invalid value \"%s\" in \"expect\" directive: expected a text, or \"~\" or \"~*\" and "
            "a regular expression",
            word->text);
        return;
    }
    if (any_case)
        text = arena_printf(apply->cycle->arena, "*%s", text);
    if (text == NULL)
        report_error(apply->report, NULL, "out of memory");
    else if ((*text == '*' && !any_case) ||
             (match->regex = regex_compile(apply->cycle->arena, text, error)) == NULL)
        report_error(
            apply->report, word + 1, "invalid regular expression \"%s\": %s", word[1].text, error);
}

static void read_match_entry(struct entries *entries, const struct conf_directive *entry)
{
    struct match *match = container_of(entries, struct match_reading, entries)->match;
    struct conf_report *report = entries->apply->report;
    const char *name = entry->name.text;
    bool is_send = strcmp(name, "send") == 0;

    if (!is_send && strcmp(name, "expect") != 0)
        report_error(report, &entry->name,
            "unknown directive \"%s\" in \"match\" block: expected \"send\" or \"expect\"", name);
    else if (is_send ? match->send.p != NULL : match_expects(match))
        report_error(report, &entry->name, "\"%s\" directive is duplicate", name);
    else if (!is_send && entry->arg_n == 2)
        read_regex(entries->apply, match, &entry->args[0], entry->args[1].text);
    else if (entries_have(entries, entry, 1))
        read_match_bytes(entries->apply, &entry->args[0], is_send ? &match->send : &match->expect);
}

int match_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct health_conf *conf = feature_conf(apply, FEATURE_HEALTH);
    struct match_list *list = &conf->matches;
    struct match *match = apply_alloc(apply, sizeof(*match));
    struct match_reading reading = {
        .entries = { .apply = apply, .directive = directive, .each = read_match_entry },
        .match = match,
    };

    (void)field;
    if (match == NULL)
        return -1;
    match->name = directive->args[0].text;
    if (match_find(list, match->name) != NULL)
        return report_error(apply->report, &directive->args[0],
            "there is a \"match\" block of the name \"%s\" already", match->name);
    STAILQ_INSERT_TAIL(list, match, link);
    return entries_read(&reading.entries);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* `match`: a health check's text to send and to expect, mistakes, and the required answer. */
#include "features/features.h"
#include "features/health/health.h"
#include "settings/loading.h"
#include "support/regex_built.h"
#include "support/test.h"

#include <string.h>

static struct loading loading;

static const struct match_list *matches_of(void)
{
    const struct health_conf *conf = loading.cycle->stream.features[FEATURE_HEALTH];

    return &conf->matches;
}

static void setup(void)
{
    loading_begin(&loading);
}

static void teardown(void)
{
    loading_end(&loading);
}

/* The column is the position of `word` in the text. */
static void refuse(const char *stream, const char *word, const char *message)
{
    char text[1024], expected[1024];
    int before = snprintf(text, sizeof(text), "events { } stream { %s }", stream);

    ck_assert_int_lt(before, (int)sizeof(text));
    snprintf(expected, sizeof(expected), "%s in /main:1:%u\n", message,
        (unsigned)(strstr(text, word) - text) + 1);
    refuse_text(&loading, text, expected);
}

/* Returns the block "m" with these directives. */
static const struct match *read_match(const char *block)
{
    const struct match *match;
    char text[1024];

    snprintf(text, sizeof(text), "events { } stream { match a { } match m { %s } }", block);
    accept_text(&loading, text, "");
    match = match_find(matches_of(), "m");
    ck_assert_ptr_nonnull(match);
    return match;
}

static void expect_bytes(const struct match_bytes *bytes, const char *p, size_t n)
{
    ck_assert_uint_eq(bytes->n, n);
    ck_assert_mem_eq(bytes->p, p, n);
}

START_TEST(texts_may_have_any_byte)
{
    const struct match *match = read_match("send \"a\\r\\n\\x00\\xfF\\y\"; expect \\x2bOK\\x00;");

    expect_bytes(&match->send, "a\r\n\0\xff\\y", 7);
    expect_bytes(&match->expect, "+OK\0", 4);
    ck_assert(match_expects(match));
    ck_assert_ptr_null(match_find(matches_of(), "n"));
}
END_TEST

START_TEST(an_empty_block_only_connects)
{
    const struct match *match = read_match("");

    ck_assert_ptr_null(match->send.p);
    ck_assert(!match_expects(match));
}
END_TEST

START_TEST(an_answer_begins_with_the_text)
{
    const struct match *match = read_match("expect +OK;");

    ck_assert_int_eq(match_test(match, NULL, "+", 1), MATCH_MORE);
    ck_assert_int_eq(match_test(match, NULL, "+O", 2), MATCH_MORE);
    ck_assert_int_eq(match_test(match, NULL, "+OK", 3), MATCH_FOUND);
    ck_assert_int_eq(match_test(match, NULL, "+OK more", 8), MATCH_FOUND);
    ck_assert_int_eq(match_test(match, NULL, "-", 1), MATCH_NEVER);
    ck_assert_int_eq(match_test(match, NULL, "+OX", 3), MATCH_NEVER);
    ck_assert_int_eq(match_test(match, NULL, " +OK", 4), MATCH_NEVER);
}
END_TEST

START_TEST(a_mistake_is_reported_at_its_word)
{
    refuse("match a { } match a { }", "a { } }",
        "there is a \"match\" block of the name \"a\" already");
    refuse("match a { send \\x4; }", "\\x4",
        "invalid text \"\\x4\": expected two hexadecimal digits after \"\\x\"");
    refuse("match a { send \\x; }", "\\x",
        "invalid text \"\\x\": expected two hexadecimal digits after \"\\x\"");
    refuse("match a { expect \"\"; }", "\"\"", "invalid text \"\": expected at least one byte");
    refuse("match a { send b; send c; }", "send c", "\"send\" directive is duplicate");
    refuse("match a { expect b; expect c; }", "expect c", "\"expect\" directive is duplicate");
    refuse("match a { status 200; }", "status",
        "unknown directive \"status\" in \"match\" block: expected \"send\" or \"expect\"");
    refuse("match a { send; }", "send;",
        "invalid number of the match parameters: expected 1 after \"send\", found 0");
    refuse("match a { expect a b; }", "a b",
        "invalid value \"a\" in \"expect\" directive: expected a text, or \"~\" or \"~*\" and a "
        "regular expression");
    refuse("match a { expect ~ b c; }", "b c",
        "invalid number of the match parameters: expected 1 after \"expect\", found 3");
}
END_TEST

START_TEST(an_expression_is_found_in_the_answer)
{
    const struct match *match;

    if (!regex_built()) {
        refuse("match a { expect ~ b; }", "b;",
            "invalid regular expression \"b\": regular expressions need PCRE2, which this build of "
            "forkbeard lacks");
        return;
    }
    match = read_match("expect ~ \"200 OK\\x21\";");
    ck_assert_int_eq(match_test(match, NULL, "HTTP/1.0 200 ", 13), MATCH_MORE);
    ck_assert_int_eq(match_test(match, NULL, "HTTP/1.0 200 OK!", 16), MATCH_FOUND);
    ck_assert_int_eq(match_test(match, NULL, "HTTP/1.0 200 ok!", 16), MATCH_MORE);
    match = read_match("expect ~* \"^ok$\";");
    ck_assert_int_eq(match_test(match, NULL, "OK", 2), MATCH_FOUND);
    refuse("match a { expect ~ \"(b\"; }", "\"(b\"",
        "invalid regular expression \"(b\": missing closing parenthesis at its byte 3");
    refuse(
        "match a { expect ~ *; }", "*;", "invalid regular expression \"*\": it begins with \"*\"");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, texts_may_have_any_byte);
    tcase_add_test(tcase, an_empty_block_only_connects);
    tcase_add_test(tcase, an_answer_begins_with_the_text);
    tcase_add_test(tcase, a_mistake_is_reported_at_its_word);
    tcase_add_test(tcase, an_expression_is_found_in_the_answer);
}

TEST_MAIN("match", add_tests)

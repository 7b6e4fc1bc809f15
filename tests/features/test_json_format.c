/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON formats: variables in the place of whole values, and texts valid there without quotes. */
#include "features/access_log/json_format.h"

#include "base/compiler.h"
#include "base/json.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

/* A "$" is a variable; a "!" behind it expects the variable to be a whole value. A "|" ends a text
 * without a variable, as a further string of the directive does. */
static const char *const formats[] = {
    "{\"a\":$!,\"b\":$!}",
    "{ \"a\" : $! , \"b\" : \"$\" }",
    "{|\"a\":|$!|}",
    "[$!,$!,[ $! ]]",
    "{\"a\":\"$\\\"$\",\"b\":$!}",
    "{\"a\":\"\\\\\",\"b\":$!}",
    "{\"a\":\"x\\|\"$\",\"b\":$!}",
    "{\"a\":\"$,$\"}",
    /* a part of a value, or no value */
    "{\"a\":1$}",
    "{\"a\":$0}",
    "{\"a\":$$}",
    "{\"a\":$ $}",
    "{\"a\":$.$,\"b\":-$}",
    "{$:1,$:2}",
    "{\"$\":$!}",
    "{\"a\":$!,\"b\":{\"c\":[1,$!]}}",
    "{\"a\":$",
    /* no JSON */
    "$",
    "$ [$] $",
    "a:[$,$]",
    "client:$,",
    "",
};

START_TEST(whole_values)
{
    struct template_part parts[32];
    bool expected[32], values[32];
    const char *p = formats[_i];
    unsigned n = 0;

    memset(parts, 0, sizeof(parts));
    while (*p != '\0') {
        size_t text = strcspn(p, "$|");

        if (text > 0) {
            expected[n] = false;
            parts[n++].text = value_own(p, text);
        }
        p += text;
        if (*p == '$') {
            expected[n] = p[1] == '!';
            parts[n].capture = 1;
            p += expected[n++];
        }
        p += *p != '\0';
    }
    json_format_find_values(parts, n, values);
    for (unsigned i = 0; i < n; i++)
        ck_assert_msg(values[i] == expected[i], "%s: part %u", formats[_i], i);
}
END_TEST

static const struct {
    const char *text;
    bool is_value;
} texts[] = {
    { "0", true },
    { "200", true },
    { "-1", true },
    { "0.000", true },
    { "1.5e3", true },
    { "1E+3", true },
    { "1e-3", true },
    { "true", true },
    { "false", true },
    { "null", true },
    { "", false },
    { "000", false },
    { "01", false },
    { "-", false },
    { "-01", false },
    { "+1", false },
    { ".5", false },
    { "1.", false },
    { "1e", false },
    { "1e+", false },
    { "1 ", false },
    { "0x1", false },
    { "0.001, 0.002", false },
    { "True", false },
    { "nul", false },
    { "nulls", false },
    { "NaN", false },
    { "[1]", false },
};

/* The daemon's reader of JSON agrees. */
START_TEST(values_as_they_are)
{
    const char *text = texts[_i].text;
    char array[32];
    int n = snprintf(array, sizeof(array), "[%s]", text);

    ck_assert_int_eq(json_format_is_value(text, strlen(text)), texts[_i].is_value);
    if (texts[_i].is_value)
        ck_assert_ptr_nonnull(json_parse(array, (size_t)n).text);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, whole_values, 0, countof(formats));
    tcase_add_loop_test(tcase, values_as_they_are, 0, countof(texts));
}

TEST_MAIN("json_format", add_tests)

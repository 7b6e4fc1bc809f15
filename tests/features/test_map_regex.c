/* SPDX-License-Identifier: BSD-2-Clause */
/* Regular expressions in maps: the expression that counts, the captures, and the failures. */
#include "base/compiler.h"
#include "features/defined.h"
#include "support/test.h"

#define MAP(entries) "map $key $m { " entries " } map $key $n { ~^(?<first>.)(?<x>x)?(.*)$ N; } "

static void expect(const char *stream, const char *key, const char *text, const char *value)
{
    const char *const rows[] = { text, value, NULL };
    char whole[1024];

    snprintf(whole, sizeof(whole), "%s server { set $firs set; set $key \"%s\"; ", stream, key);
    defined_expect(whole, rows, "");
}

#define ENTRIES                                                                                    \
    "default D; ~^A(.)c \"one $1\"; ~*^b(?<nm>.+)e$ \"n $nm\"; \"~x{2}\" two; ~^A four; abd key; " \
    "\"~^e(?<t>t)?(u)?\" \"[$t][$1][$2]\"; ~z \"\";"

START_TEST(the_first_expression_counts)
{
    static const char *const rows[][2] = { { "Abc", "one b" }, { "abc", "D" }, { "A", "four" },
        { "beee", "n ee" }, { "BzzzE", "n zzz" }, { "axx", "two" }, { "", "D" }, { "ABD", "key" },
        { "eu", "[][][u]" }, { "et", "[t][t][]" }, { "z", "" } };

    for (size_t i = 0; i < countof(rows); i++)
        expect(MAP(ENTRIES), rows[i][0], "$m", rows[i][1]);
}
END_TEST

START_TEST(captures_are_those_of_the_last_match)
{
    expect(MAP("~^(.)(.)(.)?$ \"$1-$2-$3\"; default D;"), "ab", "[$1] $m [$1] [$2] [$3] [$9]",
        "[] a-b- [a] [b] [] []");
    expect(MAP("~^(.)(.)(.)?$ \"$1-$2-$3\"; default D;"), "axc",
        "$n $3 [$first] [$x] $m [$3] [$x] $first$firs", "N c [a] [x] a-x-c [c] [x] aset");
    expect(MAP("~q Q; default \"[$1]\";"), "abc", "$n $m $1", "N [a] a");
}
END_TEST

START_TEST(an_empty_text_matches_none)
{
    expect(MAP("~^ any; default D;"), "", "$m [$first]", "D []");
}
END_TEST

START_TEST(an_expression_that_takes_too_long_fails)
{
    static const char *const rows[] = { "$m", "D", NULL };

    defined_expect("map $key $m { default D; ~*^(a+)+$ hit; ~b$ B; }"
                   "server { set $key aaaaaaaaaaaaaaaab; ", /* 131,087 steps */
        rows,
        "t: [error] *1 the regular expression \"*^(a+)+$\" has failed: the match takes more than "
        "50000 steps, client: 192.0.2.1, server: 192.0.2.7:77\n");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_first_expression_counts);
    tcase_add_test(tcase, captures_are_those_of_the_last_match);
    tcase_add_test(tcase, an_empty_text_matches_none);
    tcase_add_test(tcase, an_expression_that_takes_too_long_fails);
}

TEST_MAIN("map_regex", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps, and variables set by a server, in a session. */
#include "base/compiler.h"
#include "features/defined.h"
#include "support/test.h"
#include "text/variable.h"

/* A map of $key, and the server with `set $key`. */
#define MAPPED(key, entries) "map $key $m { " entries " } server { set $key \"" key "\"; "

static void expect(const char *stream, const char *text, const char *value)
{
    const char *const rows[] = { text, value, NULL };

    defined_expect(stream, rows, "");
}

#define NAMES                                                                                      \
    "hostnames; default D; example.com E; *.example.com W; .foo.org F; www.bar.* B; "              \
    "www.bar.com BE; *.www.example.com WW; mail.* M; mail.example.com ME; *.baz.com Z;"

START_TEST(the_most_special_name_counts)
{
    static const struct {
        const char *key, *value;
    } rows[] = {
        { "example.com", "E" },
        { "EXAMPLE.com.", "E" },
        { "example.com..", "D" },
        { "www.example.com", "W" },
        { "a.WWW.example.com", "WW" },
        { "..example.com", "W" },
        { "foo.org", "F" },
        { "a.foo.org", "F" },
        { "www.bar.co.uk", "B" },
        { "www.bar.com", "BE" },
        { "www.bar.", "D" },
        { "www.bar..", "B" },
        { "mail.example.com", "ME" },
        { "mail.foo.org", "F" },
        { "mail.baz.com", "Z" },
        { "mail.www.bar.x", "M" },
        { "", "D" },
        { ".", "D" },
        { "baz.com", "D" },
    };

    for (size_t i = 0; i < countof(rows); i++) {
        char stream[1024];

        snprintf(stream, sizeof(stream), "map $key $m { " NAMES " } server { set $key \"%s\"; ",
            rows[i].key);
        expect(stream, "$m", rows[i].value);
    }
}
END_TEST

START_TEST(masks_are_keys_without_hostnames)
{
    expect(MAPPED("*.a.b", "*.a.b mask; .a.b dot;"), "$m", "mask");
    expect(MAPPED("x.a.b", "*.a.b mask; .a.b dot;"), "[$m]", "[]");
    expect(MAPPED("a.", "a without; a. with;"), "$m", "with");
    expect(MAPPED("x.a.b", "*.a.b key; hostnames; default D;"), "$m", "D");
}
END_TEST

START_TEST(words_are_keys_behind_a_backslash)
{
    expect(MAPPED("default", "\\default yes; default no;"), "$m", "yes");
    expect(MAPPED("hostnames", "\\hostnames yes; default no;"), "$m", "yes");
    expect(MAPPED("~x", "\\~x yes; default no;"), "$m", "yes");
    expect(MAPPED("foo", "\\foo yes; default no;"), "$m", "yes");
    expect(MAPPED("", "\"\" yes; default no;"), "$m", "yes");
    expect(MAPPED("x", "\"default\" yes;"), "$m", "yes");
}
END_TEST

START_TEST(values_have_variables)
{
    expect(MAPPED("a", "a \"$key-${key}!\";"), "$m", "a-a!");
    expect(MAPPED("b", "a x; default $remote_addr;"), "$m", "192.0.2.1");
    expect("map $key$key $m { aa yes; } map $m $n { yes \"$m, too\"; } server { set $key a; ", "$n",
        "yes, too");
}
END_TEST

START_TEST(a_value_is_kept_unless_it_is_volatile)
{
    static const char *const rows[] = { "[$m $v $x]", "[m2 v2 2]", NULL };

    defined_expect("map $x $m { default m$x; } map $x $v { volatile; default v$x; }"
                   "server { set $x 1; set $x 2; ",
        rows, "");
    expect("map $x $m { default m$x; } map $x $v { volatile; default v$x; }"
           "server { set $x 1; set $y $m$v; set $x 2; ",
        "$y $m $v", "m1v1 m1 v2");
}
END_TEST

START_TEST(the_last_definition_counts)
{
    expect("map $pid $m { default 1; } map $pid $m { default 2; } server { ", "$m", "2");
    expect("map $pid $m { default 1; } server { set $m 3; ", "$m", "3");
    expect("server { set $x $x.a; set $X ${x}.b; ", "$x", ".a.b");
}
END_TEST

/* Expects values of a chain of variables from "x" on, computed link by link. */
static void expect_chain(unsigned n, const char *value, const char *logged)
{
    char stream[8192], last[16];
    const char *const rows[] = { last, value, NULL };
    int used = snprintf(stream, sizeof(stream), "map $pid $m1 { \"\" \"\"; default x; } ");

    for (unsigned i = 2; i <= n; i++)
        used += snprintf(stream + used, sizeof(stream) - (size_t)used,
            "map $m%u $m%u { default \"\"; x x; } ", i - 1, i);
    snprintf(stream + used, sizeof(stream) - (size_t)used, "server { ");
    snprintf(last, sizeof(last), "$m%u", n);
    defined_expect(stream, rows, logged);
}

START_TEST(a_chain_of_variables_has_an_end)
{
    expect_chain(VARIABLE_DEPTH_MAX - 1, "x", "");
    expect_chain(VARIABLE_DEPTH_MAX, "",
        "t: [error] *1 variable \"pid\" is not evaluated: 100 variables wait for the value, "
        "client: "
        "192.0.2.1, server: 192.0.2.7:77\n");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_most_special_name_counts);
    tcase_add_test(tcase, masks_are_keys_without_hostnames);
    tcase_add_test(tcase, words_are_keys_behind_a_backslash);
    tcase_add_test(tcase, values_have_variables);
    tcase_add_test(tcase, a_value_is_kept_unless_it_is_volatile);
    tcase_add_test(tcase, the_last_definition_counts);
    tcase_add_test(tcase, a_chain_of_variables_has_an_end);
}

TEST_MAIN("map", add_tests)

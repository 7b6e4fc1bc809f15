/* SPDX-License-Identifier: BSD-2-Clause */
/* Mistakes in blocks of keys and values: `map` and the like. */
#include "features/map/map.h"
#include "settings/loading.h"
#include "support/test.h"

#include <string.h>

static struct loading loading;

/* The column is the position of `word` in the text. */
static void refuse(const char *stream, const char *word, const char *message)
{
    char text[1024], expected[1024];
    int before = snprintf(text, sizeof(text), "events { } stream { %s }", stream);

    ck_assert_int_lt(before, (int)sizeof(text));
    snprintf(expected, sizeof(expected), "%s in /main:1:%u\n", message,
        (unsigned)(strstr(text, word) - text) + 1);
    loading_begin(&loading);
    refuse_text(&loading, text, expected);
    loading_end(&loading);
}

/* Refuses entries with each of the words in the place of a key or a part. */
static void refuse_each(const char *const *words, size_t n, const char *before, const char *behind,
    const char *what, const char *form)
{
    for (size_t i = 0; i < n; i++) {
        char stream[64], message[256], entry[32];

        snprintf(entry, sizeof(entry), "%s%s", words[i], behind);
        snprintf(stream, sizeof(stream), "%s%s; }", before, entry);
        snprintf(message, sizeof(message), "invalid %s \"%s\": expected %s", what, words[i], form);
        refuse(stream, entry, message);
    }
}

START_TEST(a_key_stands_once)
{
    refuse("map a $m { a 1; A 2; }", "A 2", "conflicting parameter \"A\"");
    refuse("map a $m { a 1; \\a 2; }", "\\a 2", "conflicting parameter \"\\a\"");
    refuse("map a $m { default 1; \"default\" 2; }", "\"default\" 2",
        "duplicate default map parameter: there is a \"default\" already");
    refuse("map a $m { hostnames; .b.c 1; *.b.c 2; }", "*.b.c", "conflicting parameter \"*.b.c\"");
    refuse("map a $m { hostnames; b.c 1; .b.c 2; }", ".b.c 2", "conflicting parameter \".b.c\"");
    refuse(
        "map a $m { hostnames; w.b.* 1; w.b.* 2; }", "w.b.* 2", "conflicting parameter \"w.b.*\"");
}
END_TEST

START_TEST(a_mask_has_a_form)
{
    static const char *const masks[] = { "*.a.*", "a.*.b", "*", "*.", "a*", "*a", "a..b", "*..a",
        ".*", "..", ".a.*" };

    refuse_each(masks, countof(masks), "map a $m { hostnames; ", " 1", "hostname or wildcard",
        "\"example.com\", \"*.example.com\", \".example.com\" or \"www.example.*\"");
}
END_TEST

START_TEST(an_entry_has_a_form)
{
    refuse("map a $m { k; }", "k;",
        "invalid number of the map parameters: expected 1 after \"k\", found 0");
    refuse("map a $m { k v w; }", "w;",
        "invalid number of the map parameters: expected 1 after \"k\", found 2");
    refuse("map a $m { default; }", "default;",
        "invalid number of the map parameters: expected 1 after \"default\", found 0");
    refuse("map a $m { include; }", "include;",
        "invalid number of the map parameters: expected 1 after \"include\", found 0");
    refuse("map a $m { k { v w; } }", "k {",
        "unexpected \"{\" after \"k\" in \"map\" block, expecting a value and \";\"");
    refuse("map a $m { k $; }", "$; }",
        "invalid variable name in \"$\": expected letters, digits or \"_\" after \"$\"");
}
END_TEST

START_TEST(a_variable_is_there_and_may_be_defined)
{
    refuse("map $nope $m { k v; } server { listen 1; set $a $m; }", "$nope",
        "unknown \"nope\" variable");
    refuse("map a $m { k $nope; } server { listen 1; set $a $m; }", "$nope",
        "unknown \"nope\" variable");
    refuse("map a x { k v; }", "x {",
        "invalid variable name \"x\": expected \"$\" and letters, digits or \"_\"");
    refuse("map a $remote_addr { k v; }", "$remote_addr", "the duplicate \"remote_addr\" variable");
    refuse("server { listen 1; set $pid 1; }", "$pid", "the duplicate \"pid\" variable");
}
END_TEST

START_TEST(an_unknown_variable_may_be_nginx_s)
{
    refuse("map $remote_adr $m { } server { listen 1; set $a $m; }", "$remote_adr",
        "unknown \"remote_adr\" variable, did you mean \"remote_addr\"?");
    refuse("map $proxy_protocol_tlv_0_eb $m { } server { listen 1; set $a $m; }",
        "$proxy_protocol_tlv_0_eb", "unknown \"proxy_protocol_tlv_0_eb\" variable");
    refuse("map $ssl_ech_status $m { } server { listen 1; set $a $m; }", "$ssl_ech_status",
        "\"ssl_ech_status\" variable of nginx is not supported: this version has no Encrypted "
        "Client Hello");
    refuse("map $Geoip_org $m { } server { listen 1; set $a $m; }", "$Geoip_org",
        "\"geoip_org\" variable of nginx is not supported");
    refuse("map $upstream_nothing $m { } server { listen 1; set $a $m; }", "$upstream_nothing",
        "unknown \"upstream_nothing\" variable");
}
END_TEST

START_TEST(words_without_a_value)
{
    loading_begin(&loading);
    accept_text(&loading, "events { } stream { map a $m { hostnames 1; volatile x; } }",
        "warning: \"hostnames\" takes no value: write the key as \"\\hostnames\" in "
        "/main:1:42\n"
        "warning: \"volatile\" takes no value: write the key as \"\\volatile\" in "
        "/main:1:54\n");
    loading_end(&loading);
}
END_TEST

START_TEST(entries_come_from_files)
{
    loading_begin(&loading);
    add_file(&loading, "one", "a 1;\ninclude two;\nb 2;\n");
    add_file(&loading, "two", "c 3; d;\n");
    refuse_text(&loading, "events { } stream { map x $m { C 4; include one; } }",
        "conflicting parameter \"c\" in /two:1:1\n"
        "invalid number of the map parameters: expected 1 after \"d\", found 0 in /two:1:6\n");
    add_file(&loading, "two", "c 3; include one;\n");
    refuse_text(&loading, "events { } stream { map x $m { include one; } }",
        "\"/one\" includes itself in /two:1:14\n");
    loading_end(&loading);
}
END_TEST

/* Keys and values of a file last, though its directives do not. */
START_TEST(included_keys_last)
{
    static const char first[] = "default D; Alpha 1; \\default 2; beta \"$x-$x\"; include two;";
    static const char second[] = "hostnames; .a.b mask; gamma 1; \"~^d(?<x>e)\" $x;";
    const struct map *map;

    loading_begin(&loading);
    add_file(&loading, "one", first);
    add_file(&loading, "two", second);
    accept_text(&loading,
        HAVE_PCRE2 ? "events { } stream { map $pid $m { include one; } }"
                   : "events { } stream { map $pid $m { default D; } }",
        "");
    map = variables_add(loading.cycle->stream.variables, loading.cycle->arena, "m", 1)->arg;
    ck_assert_str_eq(map->texts[map->otherwise].p, "D");
    if (HAVE_PCRE2) {
        ck_assert_str_eq(map->texts[map_find(map, "alpha", 5)].p, "1");
        ck_assert_str_eq(map->texts[map_find(map, "default", 7)].p, "2");
        ck_assert_str_eq(map->texts[map_find(map, "x.A.b", 5)].p, "mask");
        ck_assert_str_eq(map->texts[map_find(map, "gamma", 5)].p, "1");
        ck_assert_ptr_nonnull(map->texts[map_find(map, "beta", 4)].template);
        ck_assert_ptr_nonnull(map->regexes);
    }
    add_file(&loading, "two", "e $nope;");
    refuse_text(&loading,
        "events { } stream { map $pid $m { include two; } server { listen 1; set $a $m; } }",
        "unknown \"nope\" variable in /two:1:3\n");
    loading_end(&loading);
}
END_TEST

START_TEST(a_network_has_a_form)
{
    static const char *const wrong[] = { "1.2.3", "1.2.3.4/33", "x", "[::1]", "::1/129",
        "unix:", "localhost", "1.2.3.4/", "1.2.3.4-1.2.3.5", "\\1.2.3.4", "::/-1", "proxy" };

    for (size_t i = 0; i < countof(wrong); i++) {
        char stream[64], message[128], word[32];

        snprintf(word, sizeof(word), "%s 1;", wrong[i]);
        snprintf(stream, sizeof(stream), "geo $g { %s }", word);
        snprintf(message, sizeof(message),
            "invalid network \"%s\": expected an address, or address/bits", wrong[i]);
        refuse(stream, word, message);
    }
    refuse("geo $g { 1.2.3.4; }", "1.2.3.4;",
        "invalid number of the geo parameters: expected 1 after \"1.2.3.4\", found 0");
    refuse(
        "geo $nope $g { } server { listen 1; set $a $g; }", "$nope", "unknown \"nope\" variable");
}
END_TEST

START_TEST(a_range_has_a_form)
{
    static const char *const wrong[] = { "10.0.0.0/8", "1.2.3.4", "1.2.3.5-1.2.3.4", "1.2.3.4-",
        "-1.2.3.4", "1.2.3.4-::1", "::2-::1" };

    for (size_t i = 0; i < countof(wrong); i++) {
        char stream[64], message[128], word[32];

        snprintf(word, sizeof(word), "%s 1;", wrong[i]);
        snprintf(stream, sizeof(stream), "geo $g { ranges; %s }", word);
        snprintf(message, sizeof(message),
            "invalid range \"%s\": expected two addresses, such as 192.0.2.0-192.0.2.255",
            wrong[i]);
        refuse(stream, word, message);
    }
    refuse("geo $g { ranges; 1.2.3.4-1.2.3.9 a; 1.2.3.6-1.2.3.19 b; }", "1.2.3.6-1",
        "range \"1.2.3.6-1.2.3.19\" overlaps \"1.2.3.4-1.2.3.9\"");
    refuse("geo $g { ranges; ::4-::9 a; ::1-::4 b; }", "::1-",
        "range \"::1-::4\" overlaps \"::4-::9\"");
    refuse("geo $g { 1.2.3.4 a; ranges; }", "ranges;",
        "the \"ranges\" directive must be the first directive inside \"geo\" block");
}
END_TEST

START_TEST(what_stands_twice_is_warned_of)
{
    loading_begin(&loading);
    accept_text(&loading,
        "events { } stream { geo $g {\n1.2.3.4 a;\n1.2.3.4/32 b;\n10.0.0.1/8 c;\n"
        "delete 11.0.0.0/8;\n::ffff:1.2.3.4 d;\ndefault e;\n::/0 f;\n} }",
        "warning: duplicate network \"1.2.3.4/32\", value: \"b\", old value: \"a\" in /main:3:1\n"
        "warning: low address bits of 10.0.0.1/8 are meaningless in /main:4:1\n"
        "warning: no network \"11.0.0.0/8\" to delete in /main:5:8\n"
        "warning: \"::ffff:1.2.3.4\" matches no address: write it in the form of IPv4 in "
        "/main:6:1\n"
        "warning: duplicate network \"::/0\", value: \"f\", old value: \"e\" in /main:8:1\n");
    accept_text(&loading,
        "events { } stream { geo $g {\nranges; default a; 1.2.3.4-1.2.3.5 a;\n"
        "1.2.3.4-1.2.3.5 b;\ndefault c;\ndelete 1.2.3.4-1.2.3.4;\n} }",
        "warning: duplicate range \"1.2.3.4-1.2.3.5\", value: \"b\", old value: \"a\" in "
        "/main:3:1\n"
        "warning: duplicate default geo range value: \"c\", old value: \"a\" in /main:4:1\n"
        "warning: no address range \"1.2.3.4-1.2.3.4\" to delete in /main:5:8\n");
    loading_end(&loading);
}
END_TEST

START_TEST(parts_have_a_form)
{
    static const char *const wrong[] = { "0%", "a", "50", "%", "-1%", "1e1%", "0.001%", "0.5%%",
        "1..5%" };

    refuse_each(wrong, countof(wrong), "split_clients x $s { ", " b", "percent value",
        "a number with up to two decimals and \"%\", or \"*\"");
    refuse(
        "split_clients x $s { 50% a; 50.01% b; }", "50.01%", "percent total is greater than 100%");
    refuse("split_clients x $s { * a; 1% b; }", "1%", "percent total is greater than 100%");
    refuse("split_clients x $s { 1000000000000% b; }", "1000000000000%",
        "invalid percent value \"1000000000000%\": expected a number with up to two decimals and "
        "\"%\", or \"*\"");
    refuse("split_clients x $s { 50%; }", "50%",
        "invalid number of the split_clients parameters: expected 1 after \"50%\", found 0");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_key_stands_once);
    tcase_add_test(tcase, a_mask_has_a_form);
    tcase_add_test(tcase, an_entry_has_a_form);
    tcase_add_test(tcase, a_variable_is_there_and_may_be_defined);
    tcase_add_test(tcase, an_unknown_variable_may_be_nginx_s);
    tcase_add_test(tcase, words_without_a_value);
    tcase_add_test(tcase, entries_come_from_files);
    tcase_add_test(tcase, included_keys_last);
    tcase_add_test(tcase, a_network_has_a_form);
    tcase_add_test(tcase, a_range_has_a_form);
    tcase_add_test(tcase, what_stands_twice_is_warned_of);
    tcase_add_test(tcase, parts_have_a_form);
}

TEST_MAIN("map", add_tests)

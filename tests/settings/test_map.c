/* SPDX-License-Identifier: BSD-2-Clause */
/* Mistakes in blocks of keys and values: `map` and its like. */
#include "settings/loading.h"
#include "stream/map.h"
#include "support/test.h"

#include <string.h>

static struct loading loading;

/* The column is that of `word` in the text. */
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

    for (size_t i = 0; i < countof(masks); i++) {
        char stream[64], message[256], word[16];

        snprintf(word, sizeof(word), "%s 1", masks[i]);
        snprintf(stream, sizeof(stream), "map a $m { hostnames; %s; }", word);
        snprintf(message, sizeof(message),
            "invalid hostname or wildcard \"%s\": expected \"example.com\", \"*.example.com\", "
            "\".example.com\" or \"www.example.*\"",
            masks[i]);
        refuse(stream, word, message);
    }
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

START_TEST(words_without_a_value)
{
    loading_begin(&loading);
    accept_text(&loading, "events { } stream { map a $m { hostnames 1; volatile x; } }",
        "warning: \"hostnames\" takes no value: as a key it is written \"\\hostnames\" in "
        "/main:1:42\n"
        "warning: \"volatile\" takes no value: as a key it is written \"\\volatile\" in "
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
    map = variables_add(&loading.cycle->stream.variables, loading.cycle->arena, "m", 1)->arg;
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

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_key_stands_once);
    tcase_add_test(tcase, a_mask_has_a_form);
    tcase_add_test(tcase, an_entry_has_a_form);
    tcase_add_test(tcase, a_variable_is_there_and_may_be_defined);
    tcase_add_test(tcase, words_without_a_value);
    tcase_add_test(tcase, entries_come_from_files);
    tcase_add_test(tcase, included_keys_last);
}

TEST_MAIN("map", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of maps: the results, also among many keys. */
#include "support/test.h"
#include "text/map_table.h"

#include <stdio.h>
#include <string.h>

static uint32_t find(const struct map_table *table, const char *text)
{
    return map_table_find(table, text, strlen(text));
}

static int add(struct map_table *table, const char *key, uint32_t text)
{
    return map_table_add(table, key, strlen(key), text);
}

START_TEST(an_empty_table_has_nothing)
{
    struct arena *arena = arena_create();
    struct map_table table = { .kind = (enum map_table_kind)_i };

    ck_assert_uint_eq(find(&table, ""), MAP_NONE);
    ck_assert_uint_eq(find(&table, "a.b"), MAP_NONE);
    ck_assert_int_eq(map_table_finish(&table, arena), 0);
    ck_assert_uint_eq(find(&table, ""), MAP_NONE);
    arena_destroy(&arena);
}
END_TEST

START_TEST(letters_of_ascii_have_no_case)
{
    static const char *const keys[] = { "", "a", "Alpha", "alphabet", "alphabet-a", "@[`{",
        "ALPHABETALPHABETx", "\xc4x" };
    struct map_table table = { .kind = MAP_EXACT };
    struct arena *arena = arena_create();

    for (uint32_t i = 0; i < countof(keys); i++)
        ck_assert_int_eq(add(&table, keys[i], i), 1);
    ck_assert_int_eq(add(&table, "ALPHA", 9), 0);
    ck_assert_int_eq(add(&table, "", 9), 0);
    ck_assert_int_eq(map_table_finish(&table, arena), 0);
    ck_assert_uint_eq(find(&table, ""), 0);
    ck_assert_uint_eq(find(&table, "A"), 1);
    ck_assert_uint_eq(find(&table, "aLPHa"), 2);
    ck_assert_uint_eq(find(&table, "ALPHAbet"), 3);
    ck_assert_uint_eq(find(&table, "alphabet-A"), 4);
    ck_assert_uint_eq(find(&table, "@[`{"), 5);
    ck_assert_uint_eq(find(&table, "`{@["), MAP_NONE);
    ck_assert_uint_eq(find(&table, "`[@{"), MAP_NONE);
    ck_assert_uint_eq(find(&table, "alphabetALPHABETX"), 6);
    ck_assert_uint_eq(find(&table, "alphabetALPHABETXy"), MAP_NONE);
    ck_assert_uint_eq(find(&table, "\xc4X"), 7);
    ck_assert_uint_eq(find(&table, "\xe4x"), MAP_NONE);
    ck_assert_uint_eq(map_table_find(&table, "a\0", 2), MAP_NONE);
    arena_destroy(&arena);
}
END_TEST

START_TEST(texts_have_a_case)
{
    struct map_table table = { .kind = MAP_TEXT };

    ck_assert_int_eq(add(&table, "a long text", 1), 1);
    ck_assert_int_eq(add(&table, "A long text", 2), 1);
    ck_assert_int_eq(add(&table, "A long text", 3), 0);
    ck_assert_uint_eq(find(&table, "a long text"), 1);
    ck_assert_uint_eq(find(&table, "A long text"), 2);
    map_table_discard(&table);
}
END_TEST

START_TEST(the_longest_mask_counts)
{
    struct map_table end = { .kind = MAP_END }, begin = { .kind = MAP_BEGIN };

    ck_assert_int_eq(add(&end, ".com", 1), 1);
    ck_assert_int_eq(add(&end, ".Example.com", 2), 1);
    ck_assert_int_eq(add(&end, ".a.b.example.com", 3), 1);
    ck_assert_uint_eq(find(&end, "x.com"), 1);
    ck_assert_uint_eq(find(&end, ".com"), 1);
    ck_assert_uint_eq(find(&end, "com"), MAP_NONE);
    ck_assert_uint_eq(find(&end, "example.com"), 1);
    ck_assert_uint_eq(find(&end, "b.EXAMPLE.com"), 2);
    ck_assert_uint_eq(find(&end, "xexample.com"), 1);
    ck_assert_uint_eq(find(&end, "c.b.example.com"), 2);
    ck_assert_uint_eq(find(&end, "..a.b.example.com"), 3);
    ck_assert_uint_eq(find(&end, ""), MAP_NONE);
    map_table_discard(&end);

    ck_assert_int_eq(add(&begin, "www.", 1), 1);
    ck_assert_int_eq(add(&begin, "www.example.", 2), 1);
    ck_assert_uint_eq(find(&begin, "www.example"), 1);
    ck_assert_uint_eq(find(&begin, "WWW.Example."), 2);
    ck_assert_uint_eq(find(&begin, "www.example.co.uk"), 2);
    ck_assert_uint_eq(find(&begin, "www"), MAP_NONE);
    ck_assert_uint_eq(find(&begin, "w.www.x"), MAP_NONE);
    map_table_discard(&begin);
}
END_TEST

#define MANY 20000

START_TEST(each_of_many_is_found)
{
    static char keys[MANY][24];
    struct map_table table = { .kind = (enum map_table_kind)_i };
    struct arena *arena = arena_create();
    char text[40];

    for (uint32_t i = 0; i < MANY; i++) {
        const char *form = table.kind == MAP_END ? ".h%u.com" : "h%u.x.";

        snprintf(keys[i], sizeof(keys[i]), form, i);
        ck_assert_int_eq(add(&table, keys[i], i), 1);
    }
    for (uint32_t i = 0; i < MANY; i += 7)
        ck_assert_int_eq(add(&table, keys[i], i), 0);
    ck_assert_int_eq(map_table_finish(&table, arena), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        const char *form = table.kind == MAP_END     ? "www%s"
                           : table.kind == MAP_BEGIN ? "%sorg"
                                                     : "%s";

        snprintf(text, sizeof(text), form, keys[i]);
        ck_assert_uint_eq(find(&table, text), i);
    }
    ck_assert_uint_eq(find(&table, "h20000.x."), MAP_NONE);
    arena_destroy(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, an_empty_table_has_nothing, MAP_EXACT, MAP_TEXT + 1);
    tcase_add_test(tcase, letters_of_ascii_have_no_case);
    tcase_add_test(tcase, texts_have_a_case);
    tcase_add_test(tcase, the_longest_mask_counts);
    tcase_add_loop_test(tcase, each_of_many_is_found, MAP_EXACT, MAP_TEXT + 1);
}

TEST_MAIN("map_table", add_tests)

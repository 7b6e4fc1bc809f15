/* SPDX-License-Identifier: BSD-2-Clause */
/* Arenas: alignment, zeroed memory, large blocks, texts, and the end of them all at once. */
#include "base/arena.h"
#include "support/test.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

static struct arena *create(void)
{
    struct arena *arena = arena_create();

    ck_assert_ptr_nonnull(arena);
    return arena;
}

START_TEST(memory_is_zeroed_aligned_and_its_own)
{
    enum { N = 500 };
    struct arena *arena = create();
    unsigned char *pieces[N];

    for (size_t i = 0; i < N; i++) {
        size_t size = i * 7 % 301;

        pieces[i] = arena_alloc(arena, size);
        ck_assert_ptr_nonnull(pieces[i]);
        ck_assert_uint_eq((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        for (size_t j = 0; j < size; j++)
            ck_assert_uint_eq(pieces[i][j], 0);
        memset(pieces[i], (int)(i % 255) + 1, size);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < i * 7 % 301; j++)
            ck_assert_uint_eq(pieces[i][j], i % 255 + 1);
    arena_destroy(&arena);
    ck_assert_ptr_null(arena);
}
END_TEST

START_TEST(large_pieces_leave_the_room_for_small_ones)
{
    struct arena *arena = create();
    char *first = arena_alloc(arena, 16);
    char *large = arena_alloc(arena, 1024 * 1024);
    char *second = arena_alloc(arena, 16);

    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_nonnull(large);
    ck_assert_ptr_eq(second, first + 16);
    memset(large, 'x', 1024 * 1024);
    ck_assert_int_eq(*second, 0);
    arena_destroy(&arena);
}
END_TEST

START_TEST(a_large_piece_may_be_the_first)
{
    struct arena *arena = create();
    char *large = arena_alloc(arena, 100000);
    char *small = arena_alloc(arena, 1);

    ck_assert_ptr_nonnull(large);
    ck_assert_ptr_nonnull(small);
    memset(large, 'x', 100000);
    ck_assert_int_eq(*small, 0);
    arena_destroy(&arena);
}
END_TEST

START_TEST(no_memory_is_null)
{
    struct arena *arena = create();

    ck_assert_ptr_null(arena_alloc(arena, SIZE_MAX));
    ck_assert_ptr_null(arena_alloc(arena, SIZE_MAX - 8));
    ck_assert_ptr_nonnull(arena_alloc(arena, 8));
    arena_destroy(&arena);
}
END_TEST

START_TEST(nothing_is_destroyed_twice)
{
    struct arena *arena = NULL;

    arena_destroy(&arena);
    arena = create();
    arena_destroy(&arena);
    arena_destroy(&arena);
    ck_assert_ptr_null(arena);
}
END_TEST

START_TEST(strings_are_copied)
{
    struct arena *arena = create();
    char text[] = "one two";
    char *copy = arena_strdup(arena, text), *part = arena_strndup(arena, text, 3);
    char *bytes = arena_strndup(arena, "a\0b", 3), *empty = arena_strndup(arena, "", 0);

    memset(text, 'x', sizeof(text) - 1);
    ck_assert_str_eq(copy, "one two");
    ck_assert_str_eq(part, "one");
    ck_assert_int_eq(memcmp(bytes, "a\0b", 4), 0);
    ck_assert_str_eq(empty, "");
    arena_destroy(&arena);
}
END_TEST

START_TEST(a_formatted_text_has_any_length)
{
    struct arena *arena = create();
    char *text = arena_printf(arena, "%s:%d", "line", 12);
    char *wide = arena_printf(arena, "%*d", 10000, 7);

    ck_assert_str_eq(text, "line:12");
    ck_assert_uint_eq(strlen(wide), 10000);
    ck_assert_int_eq(wide[9999], '7');
    arena_destroy(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, memory_is_zeroed_aligned_and_its_own);
    tcase_add_test(tcase, large_pieces_leave_the_room_for_small_ones);
    tcase_add_test(tcase, a_large_piece_may_be_the_first);
    tcase_add_test(tcase, no_memory_is_null);
    tcase_add_test(tcase, nothing_is_destroyed_twice);
    tcase_add_test(tcase, strings_are_copied);
    tcase_add_test(tcase, a_formatted_text_has_any_length);
}

TEST_MAIN("arena", add_tests)

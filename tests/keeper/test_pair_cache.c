/* SPDX-License-Identifier: BSD-2-Clause */
/* The cache of parsed pairs. */
#include "keeper/pair_cache.h"

#include "support/test.h"

START_TEST(the_cache_keeps_the_latest)
{
    struct pair_cache cache;
    struct pair pair = { .leaf = NULL };
    struct pair_cached *cached;

    pair_cache_init(&cache, 4);
    ck_assert_ptr_null(pair_cache_oldest(&cache));
    for (uint32_t i = 0; i < 10; i++) {
        const struct tls_pair of = { .certificate = i, .key = i, .number = i };

        ck_assert_ptr_nonnull(pair_cache_put(&cache, &of, sizeof(of), i, &pair));
        ck_assert_ptr_nonnull(pair_cache_find(&cache, &(struct tls_pair) { 0, 0, 0 }, sizeof(of)));
    }
    ck_assert_uint_eq(cache.n, 4);
    for (uint32_t i = 1; i < 10; i++) {
        cached = pair_cache_find(&cache, &(struct tls_pair) { i, i, i }, sizeof(struct tls_pair));
        ck_assert_int_eq(cached != NULL, i > 6);
        ck_assert(cached == NULL || cached->version == i);
    }
    /* a pair of the same number, or a part of the key, is not found */
    ck_assert_ptr_null(pair_cache_find(&cache, &(struct tls_pair) { 8, 9, 8 }, 12));
    ck_assert_ptr_null(pair_cache_find(&cache, &(struct tls_pair) { 8, 8, 8 }, 8));
    cached = pair_cache_put(&cache, &(struct tls_pair) { 8, 8, 8 }, 12, 99, &pair);
    ck_assert_ptr_nonnull(cached);
    ck_assert_uint_eq(cache.n, 4);
    ck_assert_ptr_eq(pair_cache_find(&cache, &(struct tls_pair) { 8, 8, 8 }, 12), cached);
    ck_assert_uint_eq(pair_cache_oldest(&cache)->version, 0);
    pair_cache_done(&cache);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_cache_keeps_the_latest);
}

TEST_MAIN("pair_cache", add_tests)

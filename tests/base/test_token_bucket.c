/* SPDX-License-Identifier: BSD-2-Clause */
/* A burst, then so many a second, however time passes. */
#include "base/token_bucket.h"

#include "support/test.h"

static const struct token_rate rate = { .burst = 10, .per_second = 4 };

static unsigned take_all(struct token_bucket *bucket, uint64_t now)
{
    unsigned n = 0;

    while (token_bucket_take(bucket, &rate, now))
        n++;
    return n;
}

START_TEST(a_burst_and_a_rate)
{
    struct token_bucket bucket = { .tokens = 0 };

    ck_assert_uint_eq(take_all(&bucket, 1000), 10);
    ck_assert_uint_eq(take_all(&bucket, 1000), 0);
    ck_assert_uint_eq(take_all(&bucket, 1249), 0);
    ck_assert_uint_eq(take_all(&bucket, 1250), 1);
    ck_assert_uint_eq(take_all(&bucket, 2250), 4);
    ck_assert_uint_eq(take_all(&bucket, 100000), 10); /* never more */
}
END_TEST

START_TEST(short_steps_add_as_much)
{
    struct token_bucket bucket = { .tokens = 0 };
    unsigned n = 0;

    take_all(&bucket, 1);
    for (uint64_t now = 1; now <= 10001; now++)
        n += take_all(&bucket, now);
    ck_assert_uint_eq(n, 40);
    ck_assert_uint_eq(take_all(&bucket, 5000), 0); /* a clock that goes back */
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_burst_and_a_rate);
    tcase_add_test(tcase, short_steps_add_as_much);
}

TEST_MAIN("token_bucket", add_tests)

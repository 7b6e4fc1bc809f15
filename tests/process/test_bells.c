/* SPDX-License-Identifier: BSD-2-Clause */
/* Bells: each ring wakes, and no count prevents the waking. */
#include "process/heritage.h"

#include "support/test.h"

#include <poll.h>
#include <unistd.h>

static bool has_rung(const struct bells *bells, unsigned i)
{
    struct pollfd bell = { .fd = bells->fds[i], .events = POLLIN };

    return poll(&bell, 1, 0) == 1;
}

START_TEST(a_ring_wakes_one)
{
    struct bells bells;

    bells_open(&bells, 3);
    ck_assert_uint_eq(bells.n, 3);
    bells_ring(&bells, 1);
    ck_assert(!has_rung(&bells, 0) && has_rung(&bells, 1) && !has_rung(&bells, 2));
    bells_quiet(&bells, 1);
    bells_quiet(&bells, 1);
    ck_assert(!has_rung(&bells, 1));
    bells_close(&bells);
    ck_assert_uint_eq(bells.n, 0);
    bells_close(&bells);
}
END_TEST

/* A count filled up by another worker is no reason not to wake. */
START_TEST(a_full_count_rings)
{
    static const uint64_t most = UINT64_MAX - 1;
    struct bells bells;
    uint64_t count;

    bells_open(&bells, 2);
    ck_assert_int_eq(write(bells.fds[0], &most, sizeof(most)), sizeof(most));
    bells_ring(&bells, 0);
    ck_assert_int_eq(read(bells.fds[0], &count, sizeof(count)), sizeof(count));
    ck_assert_uint_eq(count, 1);
    bells_close(&bells);
}
END_TEST

START_TEST(one_or_very_many_workers_have_none)
{
    struct bells bells;

    bells_open(&bells, 1);
    ck_assert_uint_eq(bells.n, 0);
    bells_open(&bells, BELLS_MAX + 1);
    ck_assert_uint_eq(bells.n, 0);
    bells_close(&bells);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_ring_wakes_one);
    tcase_add_test(tcase, a_full_count_rings);
    tcase_add_test(tcase, one_or_very_many_workers_have_none);
}

TEST_MAIN("bells", add_tests)

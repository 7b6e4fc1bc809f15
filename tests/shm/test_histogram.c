/* SPDX-License-Identifier: BSD-2-Clause */
/* Histograms of times and their summaries, and the measurement of callbacks and turns. */
#include "shm/heartbeat.h"
#include "support/test.h"

#include <stdbool.h>
#include <string.h>

static struct histogram histogram;
static struct heartbeat heartbeat;

static void set_up(void)
{
    memset(&histogram, 0, sizeof(histogram));
    memset(&heartbeat, 0, sizeof(heartbeat));
    heartbeat.rate = 1 << TICKS_RATE_BITS; /* a tick is a microsecond */
}

START_TEST(buckets_double)
{
    static const struct {
        uint64_t us;
        int bucket;
    } times[] = { { 0, 0 }, { 1, 1 }, { 2, 2 }, { 3, 2 }, { 4, 3 }, { 1023, 10 }, { 1024, 11 },
        { HISTOGRAM_GREATEST_US - 1, HISTOGRAM_BUCKETS - 2 },
        { HISTOGRAM_GREATEST_US, HISTOGRAM_BUCKETS - 1 }, { UINT64_MAX, HISTOGRAM_BUCKETS - 1 } };

    for (size_t i = 0; i < countof(times); i++) {
        bool scales = times[i].us < HISTOGRAM_GREATEST_US;

        memset(&histogram, 0, sizeof(histogram));
        heartbeat_count_any(&histogram, times[i].us);
        if (scales)
            heartbeat_count_scaled(&histogram, times[i].us << 38 | UINT32_MAX, 38);
        ck_assert_uint_eq(histogram.n[times[i].bucket], 1 + scales);
    }
}
END_TEST

START_TEST(summaries_round_up)
{
    struct histogram_summary out;

    heartbeat_summarize(&histogram, &out);
    ck_assert_uint_eq(out.n + out.p50 + out.p999 + out.max, 0);
    for (int i = 0; i < 990; i++)
        heartbeat_count_scaled(&histogram, i < 500 ? 0 : 3 << 4, 4);
    for (int i = 0; i < 9; i++)
        heartbeat_count_scaled(&histogram, 100 << 4, 4);
    heartbeat_count_scaled(&histogram, 5000 << 4, 4);
    heartbeat_summarize(&histogram, &out);
    ck_assert_uint_eq(out.n, 1000);
    ck_assert_uint_eq(out.p50, 1);
    ck_assert_uint_eq(out.p90, 4);
    ck_assert_uint_eq(out.p99, 4);
    ck_assert_uint_eq(out.p999, 128);
    ck_assert_uint_eq(out.max, 8192);
}
END_TEST

START_TEST(invented_numbers_are_bounded)
{
    struct histogram_summary out;

    memset(&histogram, 0xff, sizeof(histogram));
    heartbeat_summarize(&histogram, &out);
    ck_assert_uint_le(out.n, INT64_MAX);
    ck_assert_uint_le(out.p50, out.max);
    ck_assert_uint_eq(out.max, UINT64_C(1) << (HISTOGRAM_BUCKETS - 1));
}
END_TEST

/* Lets a callback of so many ticks run. */
static bool run_callback(unsigned protocol, uint64_t ticks)
{
    heartbeat_begin(&heartbeat, CALLBACK_DATA, protocol);
    heartbeat.now -= ticks << 16;
    return heartbeat_end(&heartbeat);
}

static uint64_t count_all(const struct histogram *of)
{
    struct histogram_summary out;

    heartbeat_summarize(of, &out);
    return out.n;
}

START_TEST(long_callbacks_are_stalls)
{
    struct heartbeat_stall stall;

    heartbeat_start(&heartbeat, UINT64_C(1) << 39);
    ck_assert(!run_callback(2, 0));
    heartbeat_start(&heartbeat, 0);
    ck_assert(!run_callback(2, UINT64_C(1) << 35));
    ck_assert_uint_eq(heartbeat.stalls, 0);
    heartbeat_start(&heartbeat, UINT64_C(1) << 34);
    ck_assert(run_callback(2, UINT64_C(1) << 35));
    ck_assert(run_callback(200, UINT64_C(1) << 35));
    ck_assert_uint_eq(heartbeat.stalls, 2);
    ck_assert_uint_eq(count_all(&heartbeat.callbacks[2]), 3);
    ck_assert_uint_eq(count_all(&heartbeat.callbacks[HEARTBEAT_PROTOCOLS - 1]), 1);
    heartbeat.turn_since -= UINT64_C(1) << (36 + 16);
    ck_assert(heartbeat_begin_wait(&heartbeat));
    stall = heartbeat_take_stall(&heartbeat);
    ck_assert_int_eq(stall.callback, CALLBACK_DATA);
    ck_assert_uint_eq(stall.protocol, 200);
    ck_assert_uint_ge(stall.us, UINT64_C(1) << 35);
    heartbeat.turn_since -= UINT64_C(1) << (36 + 16);
    ck_assert(!heartbeat_begin_wait(&heartbeat));
    ck_assert_uint_eq(count_all(&heartbeat.turns), 2);
}
END_TEST

START_TEST(a_counter_that_goes_back_makes_no_time)
{
    struct histogram_summary out;

    heartbeat_start(&heartbeat, 1000);
    ck_assert(!run_callback(1, (uint64_t)-1000000000000));
    ck_assert_uint_eq(heartbeat.stalls, 0);
    heartbeat_summarize(&heartbeat.callbacks[1], &out);
    ck_assert_uint_eq(out.max, 1);
}
END_TEST

/* The limit of purely counted times is in microseconds, at any rate. */
START_TEST(the_limit_is_a_time)
{
    heartbeat.rate = 12345; /* 340 ticks a microsecond */
    heartbeat_start(&heartbeat, 3000000);
    /* the process may have to wait for the processor between the two readings */
    ck_assert(!run_callback(1, UINT64_C(2000000) * (1 << TICKS_RATE_BITS) / 12345));
    ck_assert(run_callback(1, UINT64_C(3000003) * (1 << TICKS_RATE_BITS) / 12345));
    ck_assert_uint_eq(heartbeat.stalls, 1);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, buckets_double);
    tcase_add_test(tcase, summaries_round_up);
    tcase_add_test(tcase, invented_numbers_are_bounded);
    tcase_add_test(tcase, long_callbacks_are_stalls);
    tcase_add_test(tcase, a_counter_that_goes_back_makes_no_time);
    tcase_add_test(tcase, the_limit_is_a_time);
}

TEST_MAIN("histogram", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Pipes spliced by the kernel, at a rate: in the kernel's time, which is slow. */
#include "net/splicing.h"

static void move_at_rate(
    const struct splicing *splicing, struct pipe_end ends[2], size_t rate, uint64_t began)
{
    uint64_t passed = splicing->net.loop.clock.mono_ms - began;

    ck_assert_uint_le(ends[0].conn->received, rate * (passed / 1000 + 1));
    pipe_end_say(&ends[0], SIZE_MAX / 2);
    pipe_end_hear(&ends[1], SIZE_MAX);
}

/* The pipe waits for the rate in copies and in splices. */
START_TEST(a_rate_holds_for_both_ways)
{
    const struct conn_pipe_options options = { .rates = { 4 * MUCH, 0 } };
    struct splicing *splicing = splicing_start(_i);
    struct pipe_end ends[2];
    uint64_t began;

    splicing_open_pipe_with(splicing, ends, &options);
    began = splicing->net.loop.clock.mono_ms;
    pipe_end_say(&ends[0], SIZE_MAX / 2);
    splicing_turn_until(
        splicing, ends[1].heard >= 5 * MUCH, move_at_rate(splicing, ends, 4 * MUCH, began));
    ck_assert_uint_gt(splices_in, 0);
    ck_assert_uint_ge(splicing->net.loop.clock.mono_ms - began, 1000);
    splicing_close_far(ends);
    splicing_stop(splicing);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_rate_holds_for_both_ways, 0, SPLICING_KINDS);
}

TEST_MAIN("pipe_splice_rate", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The master's sleep ends at each signal, and is no shorter. */
#include "process/signals.h"

#include "event/timer.h"
#include "process/process_ops.h"
#include "process/role.h"
#include "support/test.h"

#include <signal.h>

#define SHORT_MS 20

static struct clock now;
static struct timers timers;
static struct alarm own;

static void set_up(void)
{
    clock_read(&now);
    timers_init(&timers, &now, NULL);
    signals_install(ROLE_MASTER);
    ck_assert_int_eq(process_ops->wakeup_begin(), 0);
}

static void expired(struct loop *loop, struct timer *timer)
{
    (void)loop;
    (void)timer;
    ck_abort_msg("nobody has run the timers");
}

/* _i: whether the handler has run before the sleep. */
START_TEST(a_signal_ends_the_sleep)
{
    set_up();
    ck_assert_int_eq(raise(SIGHUP), 0);
    if (_i == 1)
        process_ops->admit_signals();
    signals_await(&own, &timers, &now);
    ck_assert(signals_take(COMMAND_RELOAD, NULL));
}
END_TEST

/* A command not taken yet stays pending. */
START_TEST(a_command_that_waits_lets_it_sleep)
{
    struct timer timer = { .expired = expired };
    unsigned sleeps = 0;

    set_up();
    ck_assert_int_eq(raise(SIGHUP), 0);
    process_ops->admit_signals();
    timers_arm(&timers, &timer, SHORT_MS);
    for (uint64_t until = now.mono_ms + SHORT_MS; now.mono_ms < until; sleeps++)
        signals_await(&own, &timers, &now);
    ck_assert_uint_le(sleeps, 3);
    ck_assert(signals_given(COMMAND_RELOAD));
    timers_disarm(&timers, &timer);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_signal_ends_the_sleep, 0, 2);
    tcase_add_test(tcase, a_command_that_waits_lets_it_sleep);
}

TEST_MAIN("alarm", add_tests)

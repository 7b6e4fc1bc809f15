/* SPDX-License-Identifier: BSD-2-Clause */
#include "event/loop.h"
#include "support/fake.h"
#include "support/test.h"

#include <limits.h>
#include <string.h>

#define TIMERS 8

struct clockwork {
    struct loop loop; /* the first member */
    struct log log;
    struct timer timers[TIMERS];
    char order[64]; /* a letter for each expiration */
    void (*then)(struct clockwork *works, struct timer *timer);
};

static void expired(struct loop *loop, struct timer *timer)
{
    struct clockwork *works = container_of(loop, struct clockwork, loop);
    size_t n = strlen(works->order);

    ck_assert(!timer_is_set(timer));
    ck_assert_uint_lt(n, sizeof(works->order) - 1);
    works->order[n] = (char)('a' + (timer - works->timers));
    if (works->then != NULL)
        works->then(works, timer);
}

static struct clockwork *start(void)
{
    struct clockwork *works = calloc(1, sizeof(*works));
    struct loop_options options = {
        .mechanism = &fake_edge,
        .slots = 1,
        .stride = sizeof(struct source),
    };

    ck_assert_ptr_nonnull(works);
    fake_start();
    log_init(&works->log, NULL, 0);
    options.log = &works->log;
    ck_assert_int_eq(loop_init(&works->loop, &options), 0);
    for (int i = 0; i < TIMERS; i++)
        works->timers[i].expired = expired;
    return works;
}

static void stop(struct clockwork *works)
{
    ck_assert_int_eq(timers_distance(&works->loop), -1); /* none is left */
    loop_done(&works->loop);
    fake_stop();
    free(works);
}

static void pass(struct clockwork *works, uint64_t ms)
{
    fake_pass(ms);
    loop_wait(&works->loop, 0);
    timers_expire(&works->loop);
}

START_TEST(they_expire_in_order)
{
    static const uint64_t ms[TIMERS] = { 5000, 1000, 3000, 1000, 9000, 2000, 7000, 1 };
    struct clockwork *works = start();

    for (int i = 0; i < TIMERS; i++)
        timer_set(&works->loop, &works->timers[i], ms[i]);
    pass(works, 0);
    ck_assert_str_eq(works->order, "");
    pass(works, 1);
    ck_assert_str_eq(works->order, "h");
    pass(works, 4999);
    ck_assert_str_eq(works->order, "hbdfca");
    pass(works, 100000);
    ck_assert_str_eq(works->order, "hbdfcage");
    stop(works);
}
END_TEST

START_TEST(the_distance_is_to_the_earliest)
{
    struct clockwork *works = start();
    struct loop *loop = &works->loop;

    ck_assert_int_eq(timers_distance(loop), -1);
    timer_set(loop, &works->timers[0], 5000);
    timer_set(loop, &works->timers[1], 700);
    ck_assert_int_eq(timers_distance(loop), 700);
    fake_pass(500);
    ck_assert_int_eq(timers_distance(loop), 700); /* by the cached time */
    loop_wait(loop, 0);
    ck_assert_int_eq(timers_distance(loop), 200);
    fake_pass(1000);
    loop_wait(loop, 0);
    ck_assert_int_eq(timers_distance(loop), 0); /* not less */
    timer_del(loop, &works->timers[1]);
    ck_assert_int_eq(timers_distance(loop), 3500);
    timer_del(loop, &works->timers[0]);
    timer_del(loop, &works->timers[0]);
    ck_assert_int_eq(timers_distance(loop), -1);

    timer_set(loop, &works->timers[2], (uint64_t)INT_MAX + 1000);
    ck_assert_int_eq(timers_distance(loop), INT_MAX);
    timer_del(loop, &works->timers[2]);
    timer_set(loop, &works->timers[3], 0);
    ck_assert_int_eq(timers_distance(loop), 1);
    pass(works, 1);
    ck_assert_str_eq(works->order, "d");
    stop(works);
}
END_TEST

START_TEST(moving_it_a_little_is_free)
{
    static const struct {
        uint64_t after, ms; /* set again so much later, to so much from then */
        int distance;       /* then */
    } cases[] = {
        { 0, 1000, 1000 },
        { TIMER_LAZY_MS - 1, 1000, 1000 - (TIMER_LAZY_MS - 1) }, /* stays */
        { TIMER_LAZY_MS, 1000, 1000 },                           /* moves */
        { 0, 1000 - TIMER_LAZY_MS + 1, 1000 },                   /* stays */
        { 0, 1000 - TIMER_LAZY_MS, 1000 - TIMER_LAZY_MS },       /* moves */
        { 500, 5000, 5000 },
        { 500, 1, 1 },
    };
    struct clockwork *works = start();
    struct loop *loop = &works->loop;
    struct timer *timer = &works->timers[0];

    for (size_t i = 0; i < countof(cases); i++) {
        timer_set(loop, timer, 1000);
        pass(works, cases[i].after);
        timer_set(loop, timer, cases[i].ms);
        ck_assert_int_eq(timers_distance(loop), cases[i].distance);
        timer_del(loop, timer);
        ck_assert(!timer_is_set(timer));
    }
    ck_assert_str_eq(works->order, "");
    stop(works);
}
END_TEST

START_TEST(one_that_is_kept_awake_by_re_arming_expires_late)
{
    struct clockwork *works = start();

    timer_set(&works->loop, &works->timers[0], 1000);
    for (int i = 0; i < 100; i++) {
        pass(works, 100);
        timer_set(&works->loop, &works->timers[0], 1000);
    }
    ck_assert_str_eq(works->order, "");
    pass(works, 1000 - TIMER_LAZY_MS);
    ck_assert_str_eq(works->order, "");
    pass(works, TIMER_LAZY_MS);
    ck_assert_str_eq(works->order, "a");
    stop(works);
}
END_TEST

static void set_again(struct clockwork *works, struct timer *timer)
{
    timer_set(&works->loop, timer, 0);
}

START_TEST(one_that_sets_itself_again_waits_for_the_next_turn)
{
    struct clockwork *works = start();

    works->then = set_again;
    timer_set(&works->loop, &works->timers[0], 10);
    timer_set(&works->loop, &works->timers[1], 10);
    pass(works, 500);
    ck_assert_str_eq(works->order, "ab");
    pass(works, 1);
    ck_assert_str_eq(works->order, "abab");
    works->then = NULL;
    pass(works, 1);
    stop(works);
}
END_TEST

static void delete_next(struct clockwork *works, struct timer *timer)
{
    timer_del(&works->loop, timer + 1);
}

START_TEST(one_that_is_deleted_by_another_does_not_expire)
{
    struct clockwork *works = start();

    works->then = delete_next;
    for (int i = 0; i < 3; i++)
        timer_set(&works->loop, &works->timers[i], 10);
    pass(works, 10);
    ck_assert_str_eq(works->order, "ac");
    stop(works);
}
END_TEST

/* A tree without a loop, as the master has it */

struct alarm {
    struct timers *timers;
    struct timer timer;
    uint64_t again_ms; /* 0: it is not set again */
    int n;             /* how often it has expired */
};

static void rung(struct loop *loop, struct timer *timer)
{
    struct alarm *alarm = container_of(timer, struct alarm, timer);

    ck_assert_ptr_null(loop);
    ck_assert(!timer_is_set(timer));
    alarm->n++;
    if (alarm->again_ms != 0)
        timers_arm(alarm->timers, timer, alarm->again_ms);
}

START_TEST(a_tree_needs_a_clock_alone)
{
    struct clock clock = { .mono_ms = 1000 };
    struct timers timers;
    struct alarm first = { .timers = &timers, .timer = { .expired = rung }, .again_ms = 50 };
    struct alarm second = { .timers = &timers, .timer = { .expired = rung } };

    timers_init(&timers, &clock, NULL);
    ck_assert_int_eq(timers_wait(&timers), -1);
    timers_arm(&timers, &first.timer, 100);
    timers_arm_at(&timers, &second.timer, 1050);
    ck_assert_uint_eq(timers_check(&timers), 2);
    ck_assert_int_eq(timers_wait(&timers), 50);
    timers_arm(&timers, &second.timer, 49); /* moved exactly, however near */
    ck_assert_int_eq(timers_wait(&timers), 49);
    clock.mono_ms = 1100;
    ck_assert_int_eq(timers_wait(&timers), 0);
    timers_run(&timers);
    ck_assert_int_eq(first.n, 1);
    ck_assert_int_eq(second.n, 1);
    ck_assert_int_eq(timers_wait(&timers), 50); /* set again from within */
    timers_disarm(&timers, &first.timer);
    timers_disarm(&timers, &first.timer);
    timers_arm_at(&timers, &second.timer, 1); /* has passed: at the next wake-up */
    ck_assert_int_eq(timers_wait(&timers), 1);
    timers_disarm(&timers, &second.timer);
    ck_assert_uint_eq(timers_check(&timers), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, they_expire_in_order);
    tcase_add_test(tcase, the_distance_is_to_the_earliest);
    tcase_add_test(tcase, moving_it_a_little_is_free);
    tcase_add_test(tcase, one_that_is_kept_awake_by_re_arming_expires_late);
    tcase_add_test(tcase, one_that_sets_itself_again_waits_for_the_next_turn);
    tcase_add_test(tcase, one_that_is_deleted_by_another_does_not_expire);
    tcase_add_test(tcase, a_tree_needs_a_clock_alone);
}

TEST_MAIN("timer", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers: order, resolution, moving, deleting, and setting timers while others expire. */
#include "support/fixture.h"

#include <limits.h>
#include <string.h>

#define TIMERS 8

/* Timers of a loop; a timer writes a letter. */
struct loop_timers {
    struct fixture *fixture;
    struct loop *loop;
    struct timer timers[TIMERS];
    char order[64]; /* a letter for each expiration */
    void (*then)(struct loop_timers *timers, struct timer *timer);
};

static void note_expired(struct loop *loop, struct timer *timer)
{
    struct loop_timers *timers = fixture_of(loop)->test;
    size_t n = strlen(timers->order);

    ck_assert(!timer_is_set(timer));
    ck_assert_uint_lt(n, sizeof(timers->order) - 1);
    timers->order[n] = (char)('a' + (timer - timers->timers));
    if (timers->then != NULL)
        timers->then(timers, timer);
}

static struct loop_timers *start_timers(void)
{
    struct loop_timers *timers = calloc(1, sizeof(*timers));

    ck_assert_ptr_nonnull(timers);
    timers->fixture = fixture_start_loop(1);
    timers->fixture->test = timers;
    timers->loop = timers->fixture->loop;
    for (int i = 0; i < TIMERS; i++)
        timers->timers[i].expired = note_expired;
    return timers;
}

static void stop_timers(struct loop_timers *timers)
{
    ck_assert_int_eq(timers_wait(&timers->loop->timers), -1); /* none is left */
    fixture_stop(timers->fixture);
    free(timers);
}

static void pass_time(struct loop_timers *timers, uint64_t ms)
{
    sim_pass(timers->fixture->sim, ms);
    loop_wait(timers->loop, 0);
    timers_run(&timers->loop->timers);
}

START_TEST(they_expire_in_order)
{
    static const uint64_t ms[TIMERS] = { 5000, 1000, 3000, 1000, 9000, 2000, 7000, 1 };
    struct loop_timers *timers = start_timers();

    for (int i = 0; i < TIMERS; i++)
        timer_set(timers->loop, &timers->timers[i], ms[i]);
    pass_time(timers, 0);
    ck_assert_str_eq(timers->order, "");
    pass_time(timers, 1);
    ck_assert_str_eq(timers->order, "h");
    pass_time(timers, 4999);
    ck_assert_str_eq(timers->order, "hbdfca");
    pass_time(timers, 100000);
    ck_assert_str_eq(timers->order, "hbdfcage");
    stop_timers(timers);
}
END_TEST

START_TEST(the_distance_is_to_the_earliest)
{
    struct loop_timers *timers = start_timers();
    struct loop *loop = timers->loop;

    ck_assert_int_eq(timers_wait(&loop->timers), -1);
    timer_set(loop, &timers->timers[0], 5000);
    timer_set(loop, &timers->timers[1], 700);
    ck_assert_int_eq(timers_wait(&loop->timers), 700);
    sim_pass(timers->fixture->sim, 500);
    ck_assert_int_eq(timers_wait(&loop->timers), 700); /* by the cached time */
    loop_wait(loop, 0);
    ck_assert_int_eq(timers_wait(&loop->timers), 200);
    sim_pass(timers->fixture->sim, 1000);
    loop_wait(loop, 0);
    ck_assert_int_eq(timers_wait(&loop->timers), 0); /* at least the distance */
    timer_del(loop, &timers->timers[1]);
    ck_assert_int_eq(timers_wait(&loop->timers), 3500);
    timer_del(loop, &timers->timers[0]);
    timer_del(loop, &timers->timers[0]);
    ck_assert_int_eq(timers_wait(&loop->timers), -1);

    timer_set(loop, &timers->timers[2], (uint64_t)INT_MAX + 1000);
    ck_assert_int_eq(timers_wait(&loop->timers), INT_MAX);
    timer_del(loop, &timers->timers[2]);
    timer_set(loop, &timers->timers[3], 0);
    ck_assert_int_eq(timers_wait(&loop->timers), 1);
    pass_time(timers, 1);
    ck_assert_str_eq(timers->order, "d");
    stop_timers(timers);
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
    struct loop_timers *timers = start_timers();
    struct loop *loop = timers->loop;
    struct timer *timer = &timers->timers[0];

    for (size_t i = 0; i < countof(cases); i++) {
        timer_set(loop, timer, 1000);
        pass_time(timers, cases[i].after);
        timer_set(loop, timer, cases[i].ms);
        ck_assert_int_eq(timers_wait(&loop->timers), cases[i].distance);
        timer_del(loop, timer);
        ck_assert(!timer_is_set(timer));
    }
    ck_assert_str_eq(timers->order, "");
    stop_timers(timers);
}
END_TEST

START_TEST(one_that_is_kept_awake_by_re_arming_expires_late)
{
    struct loop_timers *timers = start_timers();

    timer_set(timers->loop, &timers->timers[0], 1000);
    for (int i = 0; i < 100; i++) {
        pass_time(timers, 100);
        timer_set(timers->loop, &timers->timers[0], 1000);
    }
    ck_assert_str_eq(timers->order, "");
    pass_time(timers, 1000 - TIMER_LAZY_MS);
    ck_assert_str_eq(timers->order, "");
    pass_time(timers, TIMER_LAZY_MS);
    ck_assert_str_eq(timers->order, "a");
    stop_timers(timers);
}
END_TEST

static void set_again(struct loop_timers *timers, struct timer *timer)
{
    timer_set(timers->loop, timer, 0);
}

START_TEST(one_that_sets_itself_again_waits_for_the_next_turn)
{
    struct loop_timers *timers = start_timers();

    timers->then = set_again;
    timer_set(timers->loop, &timers->timers[0], 10);
    timer_set(timers->loop, &timers->timers[1], 10);
    pass_time(timers, 500);
    ck_assert_str_eq(timers->order, "ab");
    pass_time(timers, 1);
    ck_assert_str_eq(timers->order, "abab");
    timers->then = NULL;
    pass_time(timers, 1);
    stop_timers(timers);
}
END_TEST

static void delete_next(struct loop_timers *timers, struct timer *timer)
{
    timer_del(timers->loop, timer + 1);
}

START_TEST(one_that_is_deleted_by_another_does_not_expire)
{
    struct loop_timers *timers = start_timers();

    timers->then = delete_next;
    for (int i = 0; i < 3; i++)
        timer_set(timers->loop, &timers->timers[i], 10);
    pass_time(timers, 10);
    ck_assert_str_eq(timers->order, "ac");
    stop_timers(timers);
}
END_TEST

/* A tree without a loop, as the master has it */

struct again {
    struct timers *timers;
    struct timer timer;
    uint64_t again_ms; /* 0: it is not set again */
    int n;             /* how often it has expired */
};

static void rung(struct loop *loop, struct timer *timer)
{
    struct again *again = container_of(timer, struct again, timer);

    ck_assert_ptr_null(loop);
    ck_assert(!timer_is_set(timer));
    again->n++;
    if (again->again_ms != 0)
        timers_arm(again->timers, timer, again->again_ms);
}

START_TEST(a_tree_needs_a_clock_alone)
{
    struct clock clock = { .mono_ms = 1000 };
    struct timers timers;
    struct again first = { .timers = &timers, .timer = { .expired = rung }, .again_ms = 50 };
    struct again second = { .timers = &timers, .timer = { .expired = rung } };

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
    timers_arm_at(&timers, &second.timer, 1); /* a past time: at the next wake-up */
    ck_assert_int_eq(timers_wait(&timers), 1);
    timers_disarm(&timers, &second.timer);
    ck_assert_uint_eq(timers_check(&timers), 0);
}
END_TEST

START_TEST(many_that_expire_at_once_leave_others_their_turn)
{
    enum { ALARMS = 3000, MOST = 512 };
    static struct again alarms[ALARMS];
    struct clock clock = { .mono_ms = 1000 };
    struct timers timers;
    int n = 0, before;

    timers_init(&timers, &clock, NULL);
    for (int i = 0; i < ALARMS; i++) {
        alarms[i] = (struct again) { .timers = &timers, .timer = { .expired = rung } };
        timers_arm(&timers, &alarms[i].timer, 10);
    }
    clock.mono_ms += 10;
    while (n < ALARMS) {
        ck_assert_int_eq(timers_wait(&timers), 0);
        before = n;
        timers_run(&timers);
        n = ALARMS - (int)timers_check(&timers);
        ck_assert_int_gt(n, before);
        ck_assert_int_le(n, before + MOST);
    }
    ck_assert_int_eq(timers_wait(&timers), -1);
    for (int i = 0; i < ALARMS; i++)
        ck_assert_int_eq(alarms[i].n, 1);
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
    tcase_add_test(tcase, many_that_expire_at_once_leave_others_their_turn);
}

TEST_MAIN("timer", add_tests)

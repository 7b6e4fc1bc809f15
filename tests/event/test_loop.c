/* SPDX-License-Identifier: BSD-2-Clause */
/* Posted events and what arming does, on the simulated kernel; the mechanisms are
 * tests/contract. */
#include "support/watched.h"

#include <errno.h>
#include <string.h>

#define SOURCES 4

/* Named sources that note when they run. */
struct named_sources {
    struct fixture *fixture;
    struct loop *loop;
    char order[64]; /* the names: a letter for reading, a capital for writing */
    struct watched *sources[SOURCES];
};

static void note_run(struct watched *source, enum event_direction direction)
{
    struct named_sources *named = source->fixture->test;
    size_t n = strlen(named->order);

    ck_assert_uint_lt(n, sizeof(named->order) - 1);
    named->order[n] = direction == EVENT_READ ? source->name : (char)(source->name - 'a' + 'A');
    if (source->then != NULL)
        source->then(source);
}

static struct named_sources *start_sources(void)
{
    struct named_sources *named = calloc(1, sizeof(*named));

    ck_assert_ptr_nonnull(named);
    named->fixture = fixture_start_loop(SOURCES);
    named->fixture->test = named;
    named->loop = named->fixture->loop;
    named->fixture->sim->auto_time = true;
    for (int i = 0; i < SOURCES; i++) {
        named->sources[i] = watched_create(named->fixture, sim_connection(named->fixture->sim)->fd);
        named->sources[i]->name = (char)('a' + i);
        named->sources[i]->run = note_run;
    }
    return named;
}

static void stop_sources(struct named_sources *named)
{
    for (int i = 0; i < SOURCES; i++)
        if (named->sources[i] != NULL)
            watched_close(named->fixture, &named->sources[i]);
    fixture_stop(named->fixture);
    free(named);
}

static void post_event(
    struct named_sources *named, int i, enum event_direction direction, enum event_queue queue)
{
    loop_post(named->loop, &named->sources[i]->source.events[direction], queue);
}

START_TEST(posted_events_run_in_order_and_once)
{
    struct named_sources *named = start_sources();

    post_event(named, 2, EVENT_READ, QUEUE_NORMAL);
    post_event(named, 0, EVENT_WRITE, QUEUE_NORMAL);
    post_event(named, 1, EVENT_READ, QUEUE_NORMAL);
    post_event(named, 2, EVENT_READ, QUEUE_NORMAL); /* stays where it is */
    post_event(named, 2, EVENT_READ, QUEUE_ACCEPT);
    loop_run(named->loop, QUEUE_ACCEPT);
    ck_assert_str_eq(named->order, "");
    loop_run(named->loop, QUEUE_NORMAL);
    ck_assert_str_eq(named->order, "cAb");
    loop_run(named->loop, QUEUE_NORMAL);
    ck_assert_str_eq(named->order, "cAb");
    stop_sources(named);
}
END_TEST

START_TEST(an_unposted_event_does_not_run)
{
    struct named_sources *named = start_sources();

    for (int i = 0; i < 3; i++)
        post_event(named, i, EVENT_READ, QUEUE_NORMAL);
    loop_unpost(named->loop, &named->sources[1]->source.events[EVENT_READ]);
    loop_unpost(named->loop, &named->sources[1]->source.events[EVENT_READ]);
    loop_unpost(named->loop, &named->sources[3]->source.events[EVENT_WRITE]); /* never was */
    loop_run(named->loop, QUEUE_NORMAL);
    ck_assert_str_eq(named->order, "ac");
    stop_sources(named);
}
END_TEST

START_TEST(the_next_queue_waits_a_turn)
{
    struct named_sources *named = start_sources();

    ck_assert(!loop_promote(named->loop));
    post_event(named, 0, EVENT_READ, QUEUE_NEXT);
    post_event(named, 1, EVENT_READ, QUEUE_NEXT);
    loop_run(named->loop, QUEUE_NORMAL);
    ck_assert_str_eq(named->order, "");
    ck_assert(loop_promote(named->loop));
    ck_assert(loop_promote(named->loop)); /* they are posted already */
    post_event(named, 2, EVENT_READ, QUEUE_NORMAL);
    loop_unpost(named->loop, &named->sources[0]->source.events[EVENT_READ]);
    loop_run(named->loop, QUEUE_NORMAL);
    ck_assert_str_eq(named->order, "bc"); /* before what this turn brings */
    ck_assert(!loop_promote(named->loop));
    post_event(named, 0, EVENT_READ, QUEUE_ACCEPT);
    ck_assert(loop_promote(named->loop));
    stop_sources(named);
}
END_TEST

static void post_others(struct watched *source)
{
    struct loop *loop = source->fixture->loop;

    source->then = NULL;
    loop_post(loop, &source->source.events[EVENT_READ], QUEUE_NEXT);
    loop_post(loop, &source->other->source.events[EVENT_READ], QUEUE_NORMAL);
}

START_TEST(a_handler_posts_to_the_same_turn_or_the_next)
{
    struct named_sources *named = start_sources();

    named->sources[0]->then = post_others;
    named->sources[0]->other = named->sources[2];
    post_event(named, 0, EVENT_READ, QUEUE_NORMAL);
    post_event(named, 1, EVENT_READ, QUEUE_NORMAL);
    loop_run(named->loop, QUEUE_NORMAL);
    ck_assert_str_eq(named->order, "abc");
    loop_promote(named->loop);
    loop_run(named->loop, QUEUE_NORMAL);
    ck_assert_str_eq(named->order, "abca");
    stop_sources(named);
}
END_TEST

static void close_both(struct watched *source)
{
    struct named_sources *named = source->fixture->test;

    watched_close(source->fixture, &named->sources[source->other->name - 'a']);
    watched_close(source->fixture, &named->sources[source->name - 'a']);
}

START_TEST(a_closed_source_does_not_run)
{
    struct named_sources *named = start_sources();

    named->sources[0]->then = close_both;
    named->sources[0]->other = named->sources[1];
    post_event(named, 0, EVENT_READ, QUEUE_NORMAL);
    post_event(named, 0, EVENT_WRITE, QUEUE_NORMAL);
    post_event(named, 1, EVENT_READ, QUEUE_NORMAL);
    post_event(named, 1, EVENT_WRITE, QUEUE_NEXT);
    loop_run(named->loop, QUEUE_NORMAL);
    ck_assert_str_eq(named->order, "a");
    ck_assert(!loop_promote(named->loop));
    stop_sources(named);
}
END_TEST

START_TEST(an_event_finds_only_its_own_life_of_a_slot)
{
    struct named_sources *named = start_sources();
    struct loop *loop = named->loop;
    struct source *source = &named->sources[1]->source;
    uint32_t generation = source->generation;

    ck_assert_ptr_eq(loop_source(loop, 1, generation), source);
    ck_assert_ptr_null(loop_source(loop, 1, generation + 1));
    ck_assert_ptr_null(loop_source(loop, SOURCES, 0)); /* a slot that was never used */
    ck_assert_ptr_null(loop_source(loop, 1000000, 0));
    named->sources[1] = NULL;
    source_close(loop, source, false);
    ck_assert_ptr_null(loop_source(loop, 1, generation));
    ck_assert_ptr_null(loop_source(loop, 1, generation + 1)); /* free */
    ck_assert_ptr_eq(source_get(&loop->sources), source);
    ck_assert_ptr_null(loop_source(loop, 1, generation));
    ck_assert_ptr_eq(loop_source(loop, 1, generation + 1), source);
    source_close(loop, source, false); /* without a descriptor */
    stop_sources(named);
}
END_TEST

START_TEST(what_is_reported_while_paused_is_remembered)
{
    struct named_sources *named = start_sources();
    struct loop *loop = named->loop;
    struct source *source = &named->sources[0]->source;

    ck_assert_int_eq(source_arm(loop, source, EVENT_READ), 0);
    source_disarm(loop, source, EVENT_READ);
    loop_report(loop, source, EVENT_READ);
    loop_run(loop, QUEUE_NORMAL);
    ck_assert_str_eq(named->order, "");
    ck_assert_int_eq(source_arm(loop, source, EVENT_READ), 0);
    loop_run(loop, QUEUE_NORMAL);
    ck_assert_str_eq(named->order, "a");
    /* arming an armed source runs it again, because the source is still ready; but the source has
     * run in the current turn */
    ck_assert_int_eq(source_arm(loop, source, EVENT_READ), 0);
    loop_run(loop, QUEUE_NORMAL);
    ck_assert_str_eq(named->order, "a");
    ck_assert(loop_promote(loop));
    loop_run(loop, QUEUE_NORMAL);
    ck_assert_str_eq(named->order, "aa");
    source->events[EVENT_READ].ready = false;
    ck_assert_int_eq(source_arm(loop, source, EVENT_READ), 0);
    loop_run(loop, QUEUE_NORMAL);
    ck_assert_str_eq(named->order, "aa");
    stop_sources(named);
}
END_TEST

static void report_other(struct watched *source)
{
    source->other->then = NULL;
    loop_report(source->fixture->loop, &source->other->source, EVENT_READ);
}

/* A mechanism may find more while handlers run, when a handler gives up a listener. */
START_TEST(what_is_reported_while_handlers_run_runs_too)
{
    struct named_sources *named = start_sources();
    struct watched *a = named->sources[0], *b = named->sources[1];

    ck_assert_int_eq(source_arm(named->loop, &a->source, EVENT_READ), 0);
    ck_assert_int_eq(source_arm(named->loop, &b->source, EVENT_READ), 0);
    a->then = report_other;
    a->other = b;
    loop_report(named->loop, &a->source, EVENT_READ);
    loop_run(named->loop, QUEUE_NORMAL);
    ck_assert_str_eq(named->order, "ab");
    ck_assert(loop_is_empty(named->loop, QUEUE_NORMAL));
    stop_sources(named);
}
END_TEST

START_TEST(a_source_of_no_queue_runs_within_the_wait)
{
    struct named_sources *named = start_sources();
    struct source *source = &named->sources[0]->source;

    source->queue = QUEUE_NONE;
    ck_assert_int_eq(source_arm(named->loop, source, EVENT_WRITE), 0);
    loop_wait(named->loop, 0);
    ck_assert_str_eq(named->order, "A");
    stop_sources(named);
}
END_TEST

START_TEST(a_refused_watch_changes_nothing)
{
    struct named_sources *named = start_sources();
    struct source *source = &named->sources[0]->source;

    named->fixture->sim->watch_error = ENOMEM;
    errno = 0;
    ck_assert_int_eq(source_arm(named->loop, source, EVENT_READ), -1);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_int_eq(source_arm_both(named->loop, source), -1);
    for (int i = 0; i < EVENT_DIRECTIONS; i++)
        ck_assert(!source->events[i].armed && !source->events[i].active);
    named->fixture->sim->watch_error = 0;
    ck_assert_int_eq(source_arm(named->loop, source, EVENT_READ), 0);
    stop_sources(named);
}
END_TEST

START_TEST(clock_and_bytes_are_the_mechanisms)
{
    struct named_sources *named = start_sources();
    struct loop *loop = named->loop;
    uint64_t before = loop->clock.mono_ms;

    sim_pass(named->fixture->sim, 123456);
    ck_assert_uint_eq(loop->clock.mono_ms, before); /* cached */
    loop_wait(loop, 0);
    ck_assert_uint_eq(loop->clock.mono_ms, before + 123456);
    loop_wait(loop, 1000); /* no event: the time passes at once */
    ck_assert_uint_eq(loop->clock.mono_ms, before + 124456);
    stop_sources(named);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, posted_events_run_in_order_and_once);
    tcase_add_test(tcase, an_unposted_event_does_not_run);
    tcase_add_test(tcase, the_next_queue_waits_a_turn);
    tcase_add_test(tcase, a_handler_posts_to_the_same_turn_or_the_next);
    tcase_add_test(tcase, a_closed_source_does_not_run);
    tcase_add_test(tcase, an_event_finds_only_its_own_life_of_a_slot);
    tcase_add_test(tcase, what_is_reported_while_paused_is_remembered);
    tcase_add_test(tcase, what_is_reported_while_handlers_run_runs_too);
    tcase_add_test(tcase, a_source_of_no_queue_runs_within_the_wait);
    tcase_add_test(tcase, a_refused_watch_changes_nothing);
    tcase_add_test(tcase, clock_and_bytes_are_the_mechanisms);
}

TEST_MAIN("loop", add_tests)

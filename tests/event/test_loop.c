/* SPDX-License-Identifier: BSD-2-Clause */
/* Posted events and what arming does, on the simulated kernel; the mechanisms are tests/contract. */
#include "event/loop.h"
#include "support/fake.h"
#include "support/test.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SOURCES 4

struct letter {
    struct source source; /* the first member: a slot of the loop's table */
    char name;
    void (*then)(struct loop *loop, struct letter *letter);
    struct letter *other;
};

struct desk {
    struct loop loop; /* the first member */
    struct log log;
    struct log_target target;
    char order[64]; /* who has run: a letter for reading, a capital for writing */
    struct letter *letters[SOURCES];
};

static void run(struct loop *loop, struct source *source, char name)
{
    struct desk *desk = container_of(loop, struct desk, loop);
    struct letter *letter = container_of(source, struct letter, source);
    size_t n = strlen(desk->order);

    ck_assert_uint_lt(n, sizeof(desk->order) - 1);
    desk->order[n] = name;
    if (letter->then != NULL)
        letter->then(loop, letter);
}

static void run_read(struct loop *loop, struct source *source)
{
    run(loop, source, container_of(source, struct letter, source)->name);
}

static void run_write(struct loop *loop, struct source *source)
{
    run(loop, source, (char)(container_of(source, struct letter, source)->name - 'a' + 'A'));
}

static const struct source_ops ops = {
    .run = { [EVENT_READ] = run_read, [EVENT_WRITE] = run_write },
};

static struct desk *start(void)
{
    struct desk *desk = calloc(1, sizeof(*desk));
    struct loop_options options = {
        .mechanism = &fake_edge,
        .slots = SOURCES,
        .stride = sizeof(struct letter),
    };

    ck_assert_ptr_nonnull(desk);
    fake_start();
    desk->target.fd = memfd_create("log", MFD_CLOEXEC);
    log_init(&desk->log, &desk->target, 1);
    options.log = &desk->log;
    ck_assert_int_eq(loop_init(&desk->loop, &options), 0);
    for (int i = 0; i < SOURCES; i++) {
        struct source *source = source_get(&desk->loop.sources);

        ck_assert_ptr_nonnull(source);
        desk->letters[i] = container_of(source, struct letter, source);
        desk->letters[i]->name = (char)('a' + i);
        source->ops = &ops;
        source->io = fake_edge.io;
        source->io_state = desk->loop.mechanism_state;
        source->fd = fake_connection()->fd;
    }
    return desk;
}

static void stop(struct desk *desk)
{
    for (int i = 0; i < SOURCES; i++)
        if (desk->letters[i] != NULL)
            source_close(&desk->loop, &desk->letters[i]->source, false);
    loop_done(&desk->loop);
    ck_assert_int_eq(lseek(desk->target.fd, 0, SEEK_END), 0); /* nothing was logged */
    close(desk->target.fd);
    fake_stop();
    free(desk);
}

static void post(struct desk *desk, int i, enum event_direction direction, enum event_queue queue)
{
    loop_post(&desk->loop, &desk->letters[i]->source.events[direction], queue);
}

START_TEST(posted_events_run_in_order_and_once)
{
    struct desk *desk = start();

    post(desk, 2, EVENT_READ, QUEUE_NORMAL);
    post(desk, 0, EVENT_WRITE, QUEUE_NORMAL);
    post(desk, 1, EVENT_READ, QUEUE_NORMAL);
    post(desk, 2, EVENT_READ, QUEUE_NORMAL); /* stays where it is */
    post(desk, 2, EVENT_READ, QUEUE_ACCEPT);
    loop_run(&desk->loop, QUEUE_ACCEPT);
    ck_assert_str_eq(desk->order, "");
    loop_run(&desk->loop, QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "cAb");
    loop_run(&desk->loop, QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "cAb");
    stop(desk);
}
END_TEST

START_TEST(an_unposted_event_does_not_run)
{
    struct desk *desk = start();

    for (int i = 0; i < 3; i++)
        post(desk, i, EVENT_READ, QUEUE_NORMAL);
    loop_unpost(&desk->loop, &desk->letters[1]->source.events[EVENT_READ]);
    loop_unpost(&desk->loop, &desk->letters[1]->source.events[EVENT_READ]);
    loop_unpost(&desk->loop, &desk->letters[3]->source.events[EVENT_WRITE]); /* never was */
    loop_run(&desk->loop, QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "ac");
    stop(desk);
}
END_TEST

START_TEST(the_next_queue_waits_a_turn)
{
    struct desk *desk = start();

    ck_assert(!loop_promote(&desk->loop));
    post(desk, 0, EVENT_READ, QUEUE_NEXT);
    post(desk, 1, EVENT_READ, QUEUE_NEXT);
    loop_run(&desk->loop, QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "");
    ck_assert(loop_promote(&desk->loop));
    ck_assert(!loop_promote(&desk->loop));
    post(desk, 2, EVENT_READ, QUEUE_NORMAL);
    loop_unpost(&desk->loop, &desk->letters[0]->source.events[EVENT_READ]);
    loop_run(&desk->loop, QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "bc"); /* before what this turn brings */
    stop(desk);
}
END_TEST

static void post_others(struct loop *loop, struct letter *letter)
{
    letter->then = NULL;
    loop_post(loop, &letter->source.events[EVENT_READ], QUEUE_NEXT);
    loop_post(loop, &letter->other->source.events[EVENT_READ], QUEUE_NORMAL);
}

START_TEST(a_handler_posts_to_the_same_turn_or_the_next)
{
    struct desk *desk = start();

    desk->letters[0]->then = post_others;
    desk->letters[0]->other = desk->letters[2];
    post(desk, 0, EVENT_READ, QUEUE_NORMAL);
    post(desk, 1, EVENT_READ, QUEUE_NORMAL);
    loop_run(&desk->loop, QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "abc");
    loop_promote(&desk->loop);
    loop_run(&desk->loop, QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "abca");
    stop(desk);
}
END_TEST

static void close_both(struct loop *loop, struct letter *letter)
{
    struct desk *desk = container_of(loop, struct desk, loop);

    desk->letters[letter->other->name - 'a'] = NULL;
    source_close(loop, &letter->other->source, false);
    desk->letters[letter->name - 'a'] = NULL;
    source_close(loop, &letter->source, false);
}

START_TEST(a_closed_source_does_not_run)
{
    struct desk *desk = start();

    desk->letters[0]->then = close_both;
    desk->letters[0]->other = desk->letters[1];
    post(desk, 0, EVENT_READ, QUEUE_NORMAL);
    post(desk, 0, EVENT_WRITE, QUEUE_NORMAL);
    post(desk, 1, EVENT_READ, QUEUE_NORMAL);
    post(desk, 1, EVENT_WRITE, QUEUE_NEXT);
    loop_run(&desk->loop, QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "a");
    ck_assert(!loop_promote(&desk->loop));
    stop(desk);
}
END_TEST

START_TEST(an_event_finds_only_its_own_life_of_a_slot)
{
    struct desk *desk = start();
    struct loop *loop = &desk->loop;
    struct source *source = &desk->letters[1]->source;
    uint32_t generation = source->generation;

    ck_assert_ptr_eq(loop_source(loop, 1, generation), source);
    ck_assert_ptr_null(loop_source(loop, 1, generation + 1));
    ck_assert_ptr_null(loop_source(loop, SOURCES, 0)); /* a slot that was never used */
    ck_assert_ptr_null(loop_source(loop, 1000000, 0));
    desk->letters[1] = NULL;
    source_close(loop, source, false);
    ck_assert_ptr_null(loop_source(loop, 1, generation));
    ck_assert_ptr_null(loop_source(loop, 1, generation + 1)); /* it is nobody's */
    ck_assert_ptr_eq(source_get(&loop->sources), source);
    ck_assert_ptr_null(loop_source(loop, 1, generation));
    ck_assert_ptr_eq(loop_source(loop, 1, generation + 1), source);
    source_close(loop, source, false); /* without a descriptor */
    stop(desk);
}
END_TEST

START_TEST(what_is_reported_while_paused_is_remembered)
{
    struct desk *desk = start();
    struct loop *loop = &desk->loop;
    struct source *source = &desk->letters[0]->source;

    ck_assert_int_eq(source_arm(loop, source, EVENT_READ), 0);
    source_disarm(loop, source, EVENT_READ);
    loop_report(loop, source, EVENT_READ);
    loop_run(loop, QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "");
    ck_assert_int_eq(source_arm(loop, source, EVENT_READ), 0);
    loop_run(loop, QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "a");
    /* arming what is armed already has it run once more, because it is still ready */
    ck_assert_int_eq(source_arm(loop, source, EVENT_READ), 0);
    loop_run(loop, QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "aa");
    source->events[EVENT_READ].ready = false;
    ck_assert_int_eq(source_arm(loop, source, EVENT_READ), 0);
    loop_run(loop, QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "aa");
    stop(desk);
}
END_TEST

START_TEST(a_source_of_no_queue_runs_within_the_wait)
{
    struct desk *desk = start();
    struct source *source = &desk->letters[0]->source;

    source->queue = QUEUE_NONE;
    ck_assert_int_eq(source_arm(&desk->loop, source, EVENT_WRITE), 0);
    loop_wait(&desk->loop, 0);
    ck_assert_str_eq(desk->order, "A");
    stop(desk);
}
END_TEST

START_TEST(a_refused_watch_changes_nothing)
{
    struct desk *desk = start();
    struct source *source = &desk->letters[0]->source;

    fake_refuse_watching(ENOMEM);
    errno = 0;
    ck_assert_int_eq(source_arm(&desk->loop, source, EVENT_READ), -1);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_int_eq(source_arm_both(&desk->loop, source), -1);
    for (int i = 0; i < EVENT_DIRECTIONS; i++)
        ck_assert(!source->events[i].armed && !source->events[i].active);
    fake_refuse_watching(0);
    ck_assert_int_eq(source_arm(&desk->loop, source, EVENT_READ), 0);
    stop(desk);
}
END_TEST

START_TEST(clock_and_bytes_are_the_mechanisms)
{
    struct desk *desk = start();
    struct loop *loop = &desk->loop;
    uint64_t before = loop->clock.mono_ms;

    fake_pass(123456);
    ck_assert_uint_eq(loop->clock.mono_ms, before); /* cached */
    loop_wait(loop, 0);
    ck_assert_uint_eq(loop->clock.mono_ms, before + 123456);
    loop_wait(loop, 1000); /* nothing is there: the time passes at once */
    ck_assert_uint_eq(loop->clock.mono_ms, before + 124456);
    stop(desk);
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
    tcase_add_test(tcase, a_source_of_no_queue_runs_within_the_wait);
    tcase_add_test(tcase, a_refused_watch_changes_nothing);
    tcase_add_test(tcase, clock_and_bytes_are_the_mechanisms);
}

TEST_MAIN("loop", add_tests)

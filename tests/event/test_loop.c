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
    struct fb_source source; /* the first member: a slot of the loop's table */
    char name;
    void (*then)(struct fb_loop *loop, struct letter *letter);
    struct letter *other;
};

struct desk {
    struct fb_loop loop; /* the first member */
    struct fb_log log;
    struct fb_log_target target;
    char order[64]; /* who has run: a letter for reading, a capital for writing */
    struct letter *letters[SOURCES];
};

static void run(struct fb_loop *loop, struct fb_source *source, char name)
{
    struct desk *desk = fb_container(loop, struct desk, loop);
    struct letter *letter = fb_container(source, struct letter, source);
    size_t n = strlen(desk->order);

    ck_assert_uint_lt(n, sizeof(desk->order) - 1);
    desk->order[n] = name;
    if (letter->then != NULL)
        letter->then(loop, letter);
}

static void run_read(struct fb_loop *loop, struct fb_source *source)
{
    run(loop, source, fb_container(source, struct letter, source)->name);
}

static void run_write(struct fb_loop *loop, struct fb_source *source)
{
    run(loop, source, (char)(fb_container(source, struct letter, source)->name - 'a' + 'A'));
}

static const struct fb_source_ops ops = {
    .run = { [FB_READ] = run_read, [FB_WRITE] = run_write },
};

static struct desk *start(void)
{
    struct desk *desk = calloc(1, sizeof(*desk));
    struct fb_loop_options options = {
        .mechanism = &fake_edge,
        .slots = SOURCES,
        .stride = sizeof(struct letter),
    };

    ck_assert_ptr_nonnull(desk);
    fake_start();
    desk->target.fd = memfd_create("log", MFD_CLOEXEC);
    fb_log_init(&desk->log, &desk->target, 1);
    options.log = &desk->log;
    ck_assert_int_eq(fb_loop_init(&desk->loop, &options), 0);
    for (int i = 0; i < SOURCES; i++) {
        struct fb_source *source = fb_source_get(&desk->loop.sources);

        ck_assert_ptr_nonnull(source);
        desk->letters[i] = fb_container(source, struct letter, source);
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
            fb_source_close(&desk->loop, &desk->letters[i]->source, false);
    fb_loop_done(&desk->loop);
    ck_assert_int_eq(lseek(desk->target.fd, 0, SEEK_END), 0); /* nothing was logged */
    close(desk->target.fd);
    fake_stop();
    free(desk);
}

static void post(struct desk *desk, int i, enum fb_direction direction, enum fb_queue queue)
{
    fb_loop_post(&desk->loop, &desk->letters[i]->source.events[direction], queue);
}

START_TEST(posted_events_run_in_order_and_once)
{
    struct desk *desk = start();

    post(desk, 2, FB_READ, FB_QUEUE_NORMAL);
    post(desk, 0, FB_WRITE, FB_QUEUE_NORMAL);
    post(desk, 1, FB_READ, FB_QUEUE_NORMAL);
    post(desk, 2, FB_READ, FB_QUEUE_NORMAL); /* stays where it is */
    post(desk, 2, FB_READ, FB_QUEUE_ACCEPT);
    fb_loop_run(&desk->loop, FB_QUEUE_ACCEPT);
    ck_assert_str_eq(desk->order, "");
    fb_loop_run(&desk->loop, FB_QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "cAb");
    fb_loop_run(&desk->loop, FB_QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "cAb");
    stop(desk);
}
END_TEST

START_TEST(an_unposted_event_does_not_run)
{
    struct desk *desk = start();

    for (int i = 0; i < 3; i++)
        post(desk, i, FB_READ, FB_QUEUE_NORMAL);
    fb_loop_unpost(&desk->loop, &desk->letters[1]->source.events[FB_READ]);
    fb_loop_unpost(&desk->loop, &desk->letters[1]->source.events[FB_READ]);
    fb_loop_unpost(&desk->loop, &desk->letters[3]->source.events[FB_WRITE]); /* never was */
    fb_loop_run(&desk->loop, FB_QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "ac");
    stop(desk);
}
END_TEST

START_TEST(the_next_queue_waits_a_turn)
{
    struct desk *desk = start();

    ck_assert(!fb_loop_promote(&desk->loop));
    post(desk, 0, FB_READ, FB_QUEUE_NEXT);
    post(desk, 1, FB_READ, FB_QUEUE_NEXT);
    fb_loop_run(&desk->loop, FB_QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "");
    ck_assert(fb_loop_promote(&desk->loop));
    ck_assert(!fb_loop_promote(&desk->loop));
    post(desk, 2, FB_READ, FB_QUEUE_NORMAL);
    fb_loop_unpost(&desk->loop, &desk->letters[0]->source.events[FB_READ]);
    fb_loop_run(&desk->loop, FB_QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "bc"); /* before what this turn brings */
    stop(desk);
}
END_TEST

static void post_others(struct fb_loop *loop, struct letter *letter)
{
    letter->then = NULL;
    fb_loop_post(loop, &letter->source.events[FB_READ], FB_QUEUE_NEXT);
    fb_loop_post(loop, &letter->other->source.events[FB_READ], FB_QUEUE_NORMAL);
}

START_TEST(a_handler_posts_to_the_same_turn_or_the_next)
{
    struct desk *desk = start();

    desk->letters[0]->then = post_others;
    desk->letters[0]->other = desk->letters[2];
    post(desk, 0, FB_READ, FB_QUEUE_NORMAL);
    post(desk, 1, FB_READ, FB_QUEUE_NORMAL);
    fb_loop_run(&desk->loop, FB_QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "abc");
    fb_loop_promote(&desk->loop);
    fb_loop_run(&desk->loop, FB_QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "abca");
    stop(desk);
}
END_TEST

static void close_both(struct fb_loop *loop, struct letter *letter)
{
    struct desk *desk = fb_container(loop, struct desk, loop);

    desk->letters[letter->other->name - 'a'] = NULL;
    fb_source_close(loop, &letter->other->source, false);
    desk->letters[letter->name - 'a'] = NULL;
    fb_source_close(loop, &letter->source, false);
}

START_TEST(a_closed_source_does_not_run)
{
    struct desk *desk = start();

    desk->letters[0]->then = close_both;
    desk->letters[0]->other = desk->letters[1];
    post(desk, 0, FB_READ, FB_QUEUE_NORMAL);
    post(desk, 0, FB_WRITE, FB_QUEUE_NORMAL);
    post(desk, 1, FB_READ, FB_QUEUE_NORMAL);
    post(desk, 1, FB_WRITE, FB_QUEUE_NEXT);
    fb_loop_run(&desk->loop, FB_QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "a");
    ck_assert(!fb_loop_promote(&desk->loop));
    stop(desk);
}
END_TEST

START_TEST(an_event_finds_only_its_own_life_of_a_slot)
{
    struct desk *desk = start();
    struct fb_loop *loop = &desk->loop;
    struct fb_source *source = &desk->letters[1]->source;
    uint32_t generation = source->generation;

    ck_assert_ptr_eq(fb_loop_source(loop, 1, generation), source);
    ck_assert_ptr_null(fb_loop_source(loop, 1, generation + 1));
    ck_assert_ptr_null(fb_loop_source(loop, SOURCES, 0)); /* a slot that was never used */
    ck_assert_ptr_null(fb_loop_source(loop, 1000000, 0));
    desk->letters[1] = NULL;
    fb_source_close(loop, source, false);
    ck_assert_ptr_null(fb_loop_source(loop, 1, generation));
    ck_assert_ptr_null(fb_loop_source(loop, 1, generation + 1)); /* it is nobody's */
    ck_assert_ptr_eq(fb_source_get(&loop->sources), source);
    ck_assert_ptr_null(fb_loop_source(loop, 1, generation));
    ck_assert_ptr_eq(fb_loop_source(loop, 1, generation + 1), source);
    fb_source_close(loop, source, false); /* without a descriptor */
    stop(desk);
}
END_TEST

START_TEST(what_is_reported_while_paused_is_remembered)
{
    struct desk *desk = start();
    struct fb_loop *loop = &desk->loop;
    struct fb_source *source = &desk->letters[0]->source;

    ck_assert_int_eq(fb_source_arm(loop, source, FB_READ), 0);
    fb_source_disarm(loop, source, FB_READ);
    fb_loop_report(loop, source, FB_READ);
    fb_loop_run(loop, FB_QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "");
    ck_assert_int_eq(fb_source_arm(loop, source, FB_READ), 0);
    fb_loop_run(loop, FB_QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "a");
    /* arming what is armed already has it run once more, because it is still ready */
    ck_assert_int_eq(fb_source_arm(loop, source, FB_READ), 0);
    fb_loop_run(loop, FB_QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "aa");
    source->events[FB_READ].ready = false;
    ck_assert_int_eq(fb_source_arm(loop, source, FB_READ), 0);
    fb_loop_run(loop, FB_QUEUE_NORMAL);
    ck_assert_str_eq(desk->order, "aa");
    stop(desk);
}
END_TEST

START_TEST(a_source_of_no_queue_runs_within_the_wait)
{
    struct desk *desk = start();
    struct fb_source *source = &desk->letters[0]->source;

    source->queue = FB_QUEUE_NONE;
    ck_assert_int_eq(fb_source_arm(&desk->loop, source, FB_WRITE), 0);
    fb_loop_wait(&desk->loop, 0);
    ck_assert_str_eq(desk->order, "A");
    stop(desk);
}
END_TEST

START_TEST(a_refused_watch_changes_nothing)
{
    struct desk *desk = start();
    struct fb_source *source = &desk->letters[0]->source;

    fake_refuse_watching(ENOMEM);
    errno = 0;
    ck_assert_int_eq(fb_source_arm(&desk->loop, source, FB_READ), -1);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_int_eq(fb_source_arm_both(&desk->loop, source), -1);
    for (int i = 0; i < FB_DIRECTIONS; i++)
        ck_assert(!source->events[i].armed && !source->events[i].active);
    fake_refuse_watching(0);
    ck_assert_int_eq(fb_source_arm(&desk->loop, source, FB_READ), 0);
    stop(desk);
}
END_TEST

START_TEST(clock_and_bytes_are_the_mechanisms)
{
    struct desk *desk = start();
    struct fb_loop *loop = &desk->loop;
    uint64_t before = loop->clock.mono_ms;

    fake_pass(123456);
    ck_assert_uint_eq(loop->clock.mono_ms, before); /* cached */
    fb_loop_wait(loop, 0);
    ck_assert_uint_eq(loop->clock.mono_ms, before + 123456);
    fb_loop_wait(loop, 1000); /* nothing is there: the time passes at once */
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

FB_TEST_MAIN("loop", add_tests)

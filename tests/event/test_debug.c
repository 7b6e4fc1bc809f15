/* SPDX-License-Identifier: BSD-2-Clause */
/* Debug lines of timers, queues and sources, on a pipe under poll(); none in a build without debug
 * lines. Leftovers open at a loop's end are closed with an alert. */
#include "event/loop.h"
#include "support/memory_log.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A loop with a pipe whose reading end is a source. */
struct scene {
    struct memory_log log;
    struct loop loop;
    struct source *source;
    int writing;
    struct timer timer;
};

static void take_byte(struct loop *loop, struct source *source)
{
    char byte;

    (void)loop;
    ck_assert_int_eq(read(source->fd, &byte, 1), 1);
    source->events[EVENT_READ].ready = false;
}

static void nothing_expired(struct loop *loop, struct timer *timer)
{
    (void)loop;
    (void)timer;
}

static const struct source_ops ops = { .run = { [EVENT_READ] = take_byte } };

static void begin(struct scene *scene)
{
    const struct mechanism *mechanism = mechanism_find("poll");
    struct loop_options options = {
        .mechanism = mechanism,
        .mechanism_values = mechanism_defaults(mechanism),
        .slots = 2,
        .stride = sizeof(struct source),
        .log = &scene->log.log,
    };
    int ends[2];

    memory_log_open(&scene->log, LEVEL_DEBUG);
    ck_assert_int_eq(loop_init(&scene->loop, &options), 0);
    ck_assert_int_eq(pipe(ends), 0);
    scene->source = source_get(&scene->loop.sources);
    scene->source->fd = ends[0];
    scene->source->ops = &ops;
    scene->source->io = &io_socket;
    scene->writing = ends[1];
    scene->timer = (struct timer) { .expired = nothing_expired };
}

static void end(struct scene *scene)
{
    loop_done(&scene->loop);
    close(scene->writing);
}

/* Fails where the log has anything but these lines, with "#" for the source's descriptor and "@"
 * for the timer. */
static void expect_lines(struct scene *scene, const char *lines)
{
    char expected[4096], number[24];
    size_t n = 0;

    for (; DEBUG_BUILD && *lines != '\0'; lines++) {
        ck_assert_uint_lt(n, sizeof(expected) - sizeof(number));
        if (*lines == '#')
            n += (size_t)sprintf(expected + n, "%d", scene->source->fd);
        else if (*lines == '@')
            n += (size_t)sprintf(expected + n, "%p", (void *)&scene->timer);
        else
            expected[n++] = *lines;
    }
    expected[n] = '\0';
    ck_assert_str_eq(memory_log_take(&scene->log), expected);
}

#define LINE(text) "t: [debug] " text "\n"
#define ABOUT(text) LINE("descriptor #: " text)

START_TEST(lines_of_a_source)
{
    struct scene scene;

    begin(&scene);
    ck_assert_int_eq(source_arm(&scene.loop, scene.source, EVENT_READ), 0);
    expect_lines(&scene, ABOUT("poll starts watching: read"));
    ck_assert_int_eq(write(scene.writing, "x", 1), 1);
    loop_wait(&scene.loop, 0);
    loop_run(&scene.loop, QUEUE_NORMAL);
    expect_lines(&scene, ABOUT("poll reports in") ABOUT("ready to read")
                             ABOUT("read event posted to the normal queue")
                                 ABOUT("read event of the normal queue runs"));
    source_disarm(&scene.loop, scene.source, EVENT_READ);
    ck_assert_int_eq(source_arm(&scene.loop, scene.source, EVENT_READ), 0);
    expect_lines(&scene, ABOUT("poll pauses watching: read") ABOUT("poll resumes watching: read"));
    loop_post(&scene.loop, &scene.source->events[EVENT_READ], QUEUE_NEXT);
    loop_post(&scene.loop, &scene.source->events[EVENT_READ], QUEUE_NORMAL);
    loop_promote(&scene.loop);
    expect_lines(&scene, ABOUT("read event posted to the next queue")
                             ABOUT("read event is in the next queue already")
                                 ABOUT("read event moves from the next to the normal queue"));
    ck_assert_ptr_null(loop_source(&scene.loop, 0, 7));
    expect_lines(&scene, LINE("an event of slot 0 is stale"));
    source_disarm(&scene.loop, scene.source, EVENT_READ);
    expect_lines(&scene, ABOUT("poll pauses watching: read"));
    close(scene.source->fd);
    source_detach(&scene.loop, scene.source);
    memory_log_take(&scene.log);
    end(&scene);
    memory_log_close(&scene.log);
}
END_TEST

START_TEST(lines_of_timers)
{
    struct scene scene;
    struct clock *clock = &scene.loop.clock;

    begin(&scene);
    timer_set(&scene.loop, &scene.timer, 1000);
    timer_set(&scene.loop, &scene.timer, 1299);
    timer_set(&scene.loop, &scene.timer, 5000);
    expect_lines(&scene,
        LINE("timer @ set: in 1000 ms") LINE("timer @ stays: the new deadline is 299 ms apart")
            LINE("timer @ moved: in 5000 ms"));
    clock->mono_ms += 2000;
    timer_del(&scene.loop, &scene.timer);
    timers_arm(&scene.loop.timers, &scene.timer, 10);
    clock->mono_ms += 12;
    timers_run(&scene.loop.timers);
    expect_lines(&scene, LINE("timer @ deleted: 3000 ms were left") LINE("timer @ set: in 10 ms")
                             LINE("timer @ expires: 2 ms late"));
    source_close(&scene.loop, scene.source, false);
    end(&scene);
    memory_log_close(&scene.log);
}
END_TEST

START_TEST(lines_of_a_wait)
{
    struct scene scene;
    uint64_t before;
    char expected[160];

    begin(&scene);
    source_close(&scene.loop, scene.source, false);
    loop_wait(&scene.loop, 0);
    expect_lines(&scene, "");
    before = scene.loop.clock.mono_ms;
    loop_wait(&scene.loop, 1);
    snprintf(expected, sizeof(expected),
        LINE("poll waits for 1 ms at most")
            LINE("poll has waited, the clock moves on by %" PRIu64 " ms"),
        scene.loop.clock.mono_ms - before);
    expect_lines(&scene, expected);
    end(&scene);
    memory_log_close(&scene.log);
}
END_TEST

/* With debug_points the process aborts behind the alert. */
START_TEST(a_source_that_is_left_open)
{
    struct scene scene;

    begin(&scene);
    scene.log.target.level = LEVEL_INFO;
    log_update(&scene.log.log);
    scene.log.log.point = _i == 0 ? LOG_POINT_NONE : LOG_POINT_ABORT;
    ck_assert_int_eq(source_arm(&scene.loop, scene.source, EVENT_READ), 0);
    end(&scene);
    ck_assert_int_eq(_i, 0);
    ck_assert_int_eq(write(scene.writing, "x", 1), -1);
    ck_assert_ptr_nonnull(
        strstr(memory_log_take(&scene.log), " is left open in slot 0 at the end of the loop\n"));
    memory_log_close(&scene.log);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, lines_of_a_source);
    tcase_add_test(tcase, lines_of_timers);
    tcase_add_test(tcase, lines_of_a_wait);
    tcase_add_loop_test(tcase, a_source_that_is_left_open, 0, 1);
    tcase_add_loop_test_raise_signal(tcase, a_source_that_is_left_open, SIGABRT, 1, 2);
}

TEST_MAIN("debug", add_tests)

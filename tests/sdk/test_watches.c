/* SPDX-License-Identifier: BSD-2-Clause */
/* fb_watch_fd(): the calls of a watch, refusals, the end, and the mistakes found. The descriptors
 * are real, on a simulated worker. */
#include "kit/printed.h"
#include "sdk/scripted_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <forkbeard/watch.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A watched end of a pair, with events and a reaction. */
struct end {
    fb_watch *watch;
    int fd, far; /* the watched end, and the other one */
    unsigned calls, events;
    void (*act)(struct end *end);
    struct end *other;
};

static unsigned turns; /* calls of all ends, with different turns */
static uint16_t last_turn;

static void note_ready(fb_worker *worker, fb_watch *watch, unsigned events, void *arg)
{
    struct end *end = arg;

    test_require(end->watch == watch);
    end->calls++;
    end->events = events;
    turns += worker->worker->stream.net.loop.turn != last_turn;
    last_turn = worker->worker->stream.net.loop.turn;
    if (end->act != NULL)
        end->act(end);
}

static void take_byte(struct end *end)
{
    char byte;

    test_require(read(end->fd, &byte, 1) == 1);
}

static void make_end(struct end *end)
{
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    *end = (struct end) { .fd = fds[0], .far = fds[1], .act = take_byte };
}

static fb_watch *watch_end(fb_test *test, struct end *end, unsigned events)
{
    end->watch = fb_watch_fd(fb_test_worker(test), end->fd, events, note_ready, end);
    return end->watch;
}

static void close_end(struct end *end)
{
    if (end->watch != NULL)
        fb_unwatch(end->watch);
    close(end->fd);
    close(end->far);
}

static void put_bytes(struct end *end, unsigned n)
{
    while (n-- > 0)
        ck_assert_int_eq(write(end->far, "x", 1), 1);
}

START_TEST(a_watch_is_called_once_a_turn_while_it_is_ready)
{
    fb_test *test = scripted_start();
    struct end end;

    make_end(&end);
    ck_assert_ptr_nonnull(watch_end(test, &end, FB_WATCH_READ));
    fb_test_run(test);
    ck_assert_uint_eq(end.calls, 0);
    put_bytes(&end, 3);
    fb_test_run(test);
    ck_assert_uint_eq(end.calls, 3);
    ck_assert_uint_eq(turns, 3);
    ck_assert_uint_eq(end.events, FB_WATCH_READ);
    fb_test_pass(test, 10000);
    ck_assert_uint_eq(end.calls, 3);
    close_end(&end);
    scripted_finish(&test);
}
END_TEST

static void stop_writing(struct end *end)
{
    if (end->events & FB_WATCH_READ)
        take_byte(end);
    test_require(fb_watch_set(end->watch, FB_WATCH_READ) == 0);
}

START_TEST(both_directions_are_told_in_one_call)
{
    fb_test *test = scripted_start();
    struct end end;

    make_end(&end);
    end.act = stop_writing;
    ck_assert_ptr_nonnull(watch_end(test, &end, 0));
    put_bytes(&end, 1);
    fb_test_run(test);
    ck_assert_uint_eq(end.calls, 0);
    ck_assert_int_eq(fb_watch_set(end.watch, FB_WATCH_READ | FB_WATCH_WRITE), 0);
    fb_test_run(test);
    ck_assert_uint_eq(end.calls, 1);
    ck_assert_uint_eq(end.events, FB_WATCH_READ | FB_WATCH_WRITE);
    ck_assert_int_eq(fb_watch_set(end.watch, FB_WATCH_WRITE), 0);
    fb_test_run(test);
    ck_assert_uint_eq(end.calls, 2);
    ck_assert_uint_eq(end.events, FB_WATCH_WRITE);
    close_end(&end);
    scripted_finish(&test);
}
END_TEST

static void end_other(struct end *end)
{
    take_byte(end);
    fb_unwatch(end->other->watch);
    end->other->watch = NULL;
    fb_unwatch(end->watch);
    end->watch = NULL;
}

START_TEST(an_ended_watch_is_not_called_again)
{
    fb_test *test = scripted_start();
    struct end a, b;

    make_end(&a);
    make_end(&b);
    a.act = b.act = end_other;
    a.other = &b;
    b.other = &a;
    ck_assert_ptr_nonnull(watch_end(test, &a, FB_WATCH_READ));
    ck_assert_ptr_nonnull(watch_end(test, &b, FB_WATCH_READ));
    put_bytes(&a, 2);
    put_bytes(&b, 2);
    fb_test_run(test);
    ck_assert_uint_eq(a.calls + b.calls, 1);
    ck_assert_uint_eq(test->workers->worker.watches.n, 0);
    a.act = take_byte;
    ck_assert_ptr_nonnull(watch_end(test, &a, FB_WATCH_READ));
    fb_test_run(test);
    ck_assert_uint_ge(a.calls, 1);
    close_end(&a);
    close_end(&b);
    scripted_finish(&test);
}
END_TEST

static size_t tell_conn(struct scripted_conn *script, fb_bytes in)
{
    struct end *end = (struct end *)(uintptr_t)script->n;

    put_bytes(end, 1);
    return in.n;
}

static struct scripted_conn client;

static void write_to_client(struct end *end)
{
    take_byte(end);
    fb_write(client.conn, "ready", 5);
}

START_TEST(output_of_a_callback_leaves_after_it)
{
    fb_test *test = scripted_start();
    fb_test_peer *peer;
    struct end end;

    make_end(&end);
    end.act = write_to_client;
    client.data = tell_conn;
    client.n = (uintptr_t)&end;
    peer = scripted_conn_open(test, &client);
    ck_assert_ptr_nonnull(watch_end(test, &end, FB_WATCH_READ));
    fb_test_says(peer, "go");
    fb_test_run(test);
    ck_assert_str_eq(peer_heard(peer), "ready");
    close_end(&end);
    scripted_finish(&test);
}
END_TEST

static int refusal_of(fb_test *test, int fd, unsigned events)
{
    struct end end = { .fd = fd };

    errno = 0;
    ck_assert_ptr_null(watch_end(test, &end, events));
    return errno;
}

START_TEST(what_cannot_be_watched_is_refused)
{
    fb_test *test = scripted_start();
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), root = open("/", O_RDONLY | O_CLOEXEC);
    struct end end, again;

    make_end(&end);
    ck_assert_int_eq(refusal_of(test, -1, FB_WATCH_READ), EBADF);
    ck_assert_int_eq(refusal_of(test, file, FB_WATCH_READ), EPERM);
    ck_assert_int_eq(refusal_of(test, root, FB_WATCH_READ), EPERM);
    ck_assert_int_eq(refusal_of(test, end.fd, 4), EINVAL);
    ck_assert_ptr_nonnull(watch_end(test, &end, FB_WATCH_READ));
    ck_assert_int_eq(refusal_of(test, end.fd, FB_WATCH_WRITE), EEXIST);
    ck_assert_int_eq(fb_watch_set(end.watch, 8), -1);
    ck_assert_int_eq(errno, EINVAL);
    make_end(&again);
    fb_test_refuse_memory(test, 0, 1);
    ck_assert_int_eq(refusal_of(test, again.fd, FB_WATCH_READ), ENOMEM);
    test->workers->worker.watches.n += FB_WATCHES_MAX;
    ck_assert_int_eq(refusal_of(test, again.fd, FB_WATCH_READ), EMFILE);
    test->workers->worker.watches.n -= FB_WATCHES_MAX;
    put_bytes(&end, 1);
    fb_test_run(test);
    ck_assert_uint_eq(end.calls, 1);
    close(file);
    close(root);
    close_end(&end);
    close_end(&again);
    scripted_finish(&test);
}
END_TEST

static struct printed printed;

/* Starts a test with a deliberate mistake, and catches its lines; ends the test, and checks the
 * mistake's name. */
static fb_test *start_mistaken(void)
{
    printed_begin(&printed);
    return scripted_start();
}

static void finish_mistaken(fb_test *test, const char *mistake)
{
    char text[PRINTED_MAX];
    int faults = fb_test_end(&test);

    printed_end(&printed, text);
    ck_assert_msg(faults == 1 && strstr(text, mistake) != NULL, "%s", text);
}

#define CLOSED_LINE "still watched, was closed before fb_unwatch(), by protocol \"scripted\""

START_TEST(a_descriptor_that_was_closed_before_is_told)
{
    fb_test *test = start_mistaken();
    struct end end;

    make_end(&end);
    ck_assert_ptr_nonnull(watch_end(test, &end, FB_WATCH_READ));
    close(end.fd);
    if (_i == 0)
        fb_test_run(test); /* the simulation forgets nothing */
    if (_i == 1) {
        ck_assert_int_eq(fb_watch_set(end.watch, FB_WATCH_WRITE), -1);
        ck_assert_int_eq(errno, EBADF);
    }
    ck_assert_int_eq(fb_watch_set(end.watch, FB_WATCH_READ), -1);
    ck_assert_uint_eq(end.calls, 0);
    fb_unwatch(end.watch);
    close(end.far);
    finish_mistaken(test, CLOSED_LINE);
}
END_TEST

START_TEST(a_number_that_is_taken_again_is_told_too)
{
    fb_test *test = start_mistaken();
    struct end end, again;

    make_end(&end);
    ck_assert_ptr_nonnull(watch_end(test, &end, FB_WATCH_READ));
    close(end.fd);
    make_end(&again);
    ck_assert_int_eq(again.fd, end.fd);
    ck_assert_ptr_nonnull(watch_end(test, &again, FB_WATCH_READ));
    put_bytes(&again, 1);
    fb_unwatch(end.watch);
    fb_test_run(test);
    ck_assert_uint_eq(end.calls, 0);
    ck_assert_uint_eq(again.calls, 1);
    close(end.far);
    close_end(&again);
    finish_mistaken(test, CLOSED_LINE);
}
END_TEST

START_TEST(a_watch_does_not_keep_a_draining_worker)
{
    struct end end;
    fb_test *test;

    make_end(&end);
    test = scripted_start();
    ck_assert_ptr_nonnull(watch_end(test, &end, FB_WATCH_READ));
    signals_raise(COMMAND_QUIT);
    worker_run(&test->workers->worker);
    scripted_finish(&test);
    end.watch = NULL; /* gone with the worker */
    close_end(&end);
}
END_TEST

START_TEST(what_is_closed_at_the_end_is_no_mistake)
{
    fb_test *test = scripted_start();
    struct end end;

    make_end(&end);
    ck_assert_ptr_nonnull(watch_end(test, &end, FB_WATCH_READ));
    fb_test_run(test);
    close(end.fd);
    close(end.far);
    worker_set_phase(&test->workers->worker, WORKER_ENDING);
    watches_remove_all(fb_test_worker(test));
    ck_assert_uint_eq(test->workers->worker.watches.n, 0);
    worker_done(&test->workers->worker);
    ck_assert_ptr_null(strstr(fb_test_logged(test), "fb_unwatch"));
    _exit(0);
}
END_TEST

START_TEST(the_kit_makes_a_descriptor_ready)
{
    fb_test *test = scripted_start();
    struct end end;

    make_end(&end);
    end.act = NULL;
    ck_assert_ptr_nonnull(watch_end(test, &end, FB_WATCH_READ));
    fb_test_ready(test, end.fd, FB_WATCH_READ | FB_WATCH_WRITE);
    ck_assert_uint_eq(end.calls, 0);
    fb_test_run(test);
    ck_assert_uint_eq(end.calls, 1);
    ck_assert_uint_eq(end.events, FB_WATCH_READ);
    close_end(&end);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_watch_is_called_once_a_turn_while_it_is_ready);
    tcase_add_test(tcase, both_directions_are_told_in_one_call);
    tcase_add_test(tcase, an_ended_watch_is_not_called_again);
    tcase_add_test(tcase, output_of_a_callback_leaves_after_it);
    tcase_add_test(tcase, what_cannot_be_watched_is_refused);
    tcase_add_loop_test(tcase, a_descriptor_that_was_closed_before_is_told, 0, 3);
    tcase_add_test(tcase, a_number_that_is_taken_again_is_told_too);
    tcase_add_test(tcase, a_watch_does_not_keep_a_draining_worker);
    tcase_add_exit_test(tcase, what_is_closed_at_the_end_is_no_mistake, 0);
    tcase_add_test(tcase, the_kit_makes_a_descriptor_ready);
}

TEST_MAIN("sdk_watches", add_tests)

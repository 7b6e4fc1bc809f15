/* SPDX-License-Identifier: BSD-2-Clause */
/* fb_post(): work of the next turn, the order, and the fate at a worker's end. */
#include "sdk/scripted_conn.h"

#include <string.h>
#include <unistd.h>

static fb_test *start_posts(void)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "scripted; first_byte_timeout off;",
    };
    fb_test *test = fb_test_start_with(&fb_protocol_scripted, &options);

    ck_assert_ptr_nonnull(test);
    return test;
}

struct work {
    fb_ref to;
    unsigned again; /* times that it posts itself again */
};

static unsigned runs;
static uint16_t last_turn;

static void run_work(fb_worker *worker, void *arg)
{
    struct work *work = arg;
    fb_conn *conn = fb_find(worker, work->to);

    test_require(worker->worker->stream.net.loop.turn != last_turn);
    last_turn = worker->worker->stream.net.loop.turn;
    runs++;
    if (conn != NULL)
        fb_write(conn, "run", 3);
    if (work->again-- > 0)
        test_require(fb_post(worker, run_work, work, sizeof(*work)) == 0);
}

static int post_work(fb_test *test, fb_ref to, unsigned again)
{
    struct work work = { .to = to, .again = again };

    last_turn = test->workers->worker.stream.net.loop.turn;
    return fb_post(fb_test_worker(test), run_work, &work, sizeof(work));
}

START_TEST(posted_work_runs_once_a_turn)
{
    fb_test *test = start_posts();
    struct scripted_conn a = { 0 };
    fb_test_peer *peer = scripted_conn_open(test, &a);

    ck_assert_int_eq(post_work(test, fb_ref_of(a.conn), 2), 0);
    ck_assert_uint_eq(runs, 0);
    worker_turn(&test->workers->worker);
    ck_assert_uint_eq(runs, 1);
    worker_turn(&test->workers->worker);
    ck_assert_uint_eq(runs, 2);
    fb_test_run(test);
    ck_assert_uint_eq(runs, 3);
    ck_assert_str_eq(peer_heard(peer), "runrunrun");
    ck_assert_int_eq(post_work(test, fb_ref_of(a.conn), 0), 0);
    fb_abort(a.conn); /* the work runs, and finds no connection */
    fb_test_run(test);
    ck_assert_uint_eq(runs, 4);
    scripted_finish(&test);
}
END_TEST

static char posted[8];

static void note_byte(fb_worker *worker, void *arg)
{
    (void)worker;
    posted[strlen(posted)] = arg != NULL ? *(const char *)arg : '-';
}

START_TEST(posted_work_keeps_its_order)
{
    fb_test *test = start_posts();

    ck_assert_int_eq(fb_post(fb_test_worker(test), note_byte, "a", 1), 0);
    ck_assert_int_eq(fb_post(fb_test_worker(test), note_byte, NULL, 0), 0);
    ck_assert_int_eq(fb_post(fb_test_worker(test), note_byte, "b", 1), 0);
    ck_assert_int_eq(fb_post(fb_test_worker(test), note_byte, "c", SIZE_MAX), -1);
    worker_turn(&test->workers->worker);
    ck_assert_str_eq(posted, "a-b");
    fb_test_refuse_memory(test, 0, UINT64_MAX);
    ck_assert_int_eq(fb_post(fb_test_worker(test), note_byte, "c", 1), -1);
    scripted_finish(&test);
}
END_TEST

START_TEST(a_worker_that_drains_runs_what_is_posted)
{
    fb_test *test = start_posts();

    ck_assert_int_eq(post_work(test, 0, 3), 0);
    signals_raise(COMMAND_QUIT);
    worker_run(&test->workers->worker);
    ck_assert_uint_eq(runs, 4);
    scripted_finish(&test);
}
END_TEST

START_TEST(a_worker_that_ends_at_once_frees_what_is_posted)
{
    fb_test *test = start_posts();

    ck_assert_int_eq(post_work(test, 0, 3), 0);
    worker_done(&test->workers->worker);
    ck_assert_uint_eq(runs, 0);
    ck_assert(STAILQ_EMPTY(&test->workers->worker.posts.queue));
    _exit(0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, posted_work_runs_once_a_turn);
    tcase_add_test(tcase, posted_work_keeps_its_order);
    tcase_add_test(tcase, a_worker_that_drains_runs_what_is_posted);
    tcase_add_exit_test(tcase, a_worker_that_ends_at_once_frees_what_is_posted, 0);
}

TEST_MAIN("sdk_posts", add_tests)

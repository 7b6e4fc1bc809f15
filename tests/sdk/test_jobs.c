/* SPDX-License-Identifier: BSD-2-Clause */
/* fb_run(): threads, and the beginning and the end of a protocol in its worker. */
#include "kit/printed.h"
#include "sdk/scripted_conn.h"
#include "support/wait.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

struct job {
    fb_ref to;
    int n;
    pthread_t worked; /* thread that has run it */
};

static atomic_int going; /* jobs that work now */
static atomic_bool gate; /* lock of jobs not to end yet */
static unsigned dones;
static int sum;

static void work_job(void *arg)
{
    struct job *job = arg;

    atomic_fetch_add(&going, 1);
    if (job->n < 0)
        WAIT_FOR(atomic_load(&gate));
    job->n *= 2;
    job->worked = pthread_self();
    atomic_fetch_sub(&going, 1);
}

static pthread_t loops_thread;

static void finish_job(fb_worker *worker, void *arg)
{
    const struct job *job = arg;
    fb_conn *conn = fb_find(worker, job->to);

    test_require(pthread_equal(pthread_self(), loops_thread) && pthread_self() != job->worked);
    dones++;
    sum += job->n;
    if (conn != NULL)
        fb_write(conn, "done", 4);
}

static fb_test *start_jobs(const char *threads)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "scripted; first_byte_timeout off;",
        .main = threads,
    };
    fb_test *test = fb_test_start_with(&fb_protocol_scripted, &options);

    ck_assert_ptr_nonnull(test);
    loops_thread = pthread_self();
    return test;
}

static int run_job(fb_test *test, fb_ref to, int n)
{
    struct job job = { .to = to, .n = n };
    int rc = fb_run(fb_test_worker(test), work_job, finish_job, &job, sizeof(job));

    memset(&job, 0xff, sizeof(job)); /* the job that runs is a copy */
    return rc;
}

START_TEST(done_runs_on_the_loop)
{
    fb_test *test = start_jobs(NULL);
    struct scripted_conn a = { 0 };
    fb_test_peer *peer = scripted_conn_open(test, &a);

    ck_assert_int_eq(run_job(test, fb_ref_of(a.conn), 21), 0);
    ck_assert_uint_eq(dones, 0);
    fb_test_run(test);
    ck_assert_uint_eq(dones, 1);
    ck_assert_int_eq(sum, 42);
    ck_assert_str_eq(peer_heard(peer), "done");
    scripted_finish(&test);
}
END_TEST

static void *seen_by_work;

static void look_at_job(void *arg)
{
    seen_by_work = arg;
}

static void look_too(fb_worker *worker, void *arg)
{
    (void)worker;
    ck_assert_ptr_eq(arg, seen_by_work);
    dones++;
}

START_TEST(a_job_without_bytes)
{
    fb_test *test = start_jobs(NULL);
    uint8_t byte = 1;

    ck_assert_int_eq(fb_run(fb_test_worker(test), look_at_job, look_too, NULL, 0), 0);
    fb_test_run(test);
    ck_assert_ptr_null(seen_by_work);
    ck_assert_int_eq(fb_run(fb_test_worker(test), look_at_job, look_too, &byte, 1), 0);
    fb_test_run(test);
    ck_assert_ptr_nonnull(seen_by_work);
    ck_assert_uint_eq((uintptr_t)seen_by_work % _Alignof(max_align_t), 0);
    ck_assert_uint_eq(dones, 2);
    ck_assert_int_eq(fb_run(fb_test_worker(test), look_at_job, look_too, &byte, SIZE_MAX), -1);
    scripted_finish(&test);
}
END_TEST

START_TEST(many_jobs_on_few_threads)
{
    fb_test *test = start_jobs("thread_pool default threads=3;");
    int expected = 0;

    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(run_job(test, 0, i), 0);
        expected += 2 * i;
    }
    fb_test_run(test);
    ck_assert_uint_eq(dones, 1000);
    ck_assert_int_eq(sum, expected);
    scripted_finish(&test);
}
END_TEST

/* The number of threads of the process, with the test's own thread. */
static unsigned count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    unsigned n = 0;

    ck_assert_ptr_nonnull(tasks);
    for (const struct dirent *task; (task = readdir(tasks)) != NULL;)
        n += task->d_name[0] != '.';
    closedir(tasks);
    return n;
}

START_TEST(threads_and_queue_have_an_end)
{
    fb_test *test = start_jobs("thread_pool default threads=2 max_queue=3;");
    int accepted = 0;

    ck_assert_int_eq(run_job(test, 0, -1), 0);
    WAIT_FOR(atomic_load(&going) == 1);
    ck_assert_int_eq(run_job(test, 0, -1), 0);
    WAIT_FOR(atomic_load(&going) == 2);
    while (run_job(test, 0, -1) == 0)
        accepted++;
    ck_assert_int_eq(accepted, 3);
    ck_assert_int_eq(atomic_load(&going), 2);
    atomic_store(&gate, true);
    fb_test_run(test);
    ck_assert_uint_eq(dones, 5);
    ck_assert_int_eq(run_job(test, 0, 1), 0); /* the queue has room again */
    scripted_finish(&test);
}
END_TEST

START_TEST(the_connection_has_gone_meanwhile)
{
    fb_test *test = start_jobs(NULL);
    struct scripted_conn a = { 0 };

    scripted_conn_open(test, &a);
    ck_assert_int_eq(run_job(test, fb_ref_of(a.conn), -1), 0);
    fb_abort(a.conn);
    net_flush(&test->workers->worker.stream.net);
    ck_assert_uint_eq(a.closings, 1);
    ck_assert_uint_eq(dones, 0);
    atomic_store(&gate, true);
    fb_test_run(test);
    ck_assert_uint_eq(dones, 1);
    scripted_finish(&test);
}
END_TEST

static void open_gate(struct loop *loop, struct timer *timer)
{
    (void)loop;
    (void)timer;
    atomic_store(&gate, true);
}

START_TEST(a_worker_that_ends_gracefully_waits)
{
    fb_test *test = start_jobs(NULL);
    struct timer timer = { .expired = open_gate };
    struct scripted_conn a = { 0 };

    scripted_conn_open(test, &a);
    ck_assert_int_eq(run_job(test, fb_ref_of(a.conn), -1), 0);
    fb_abort(a.conn);
    net_flush(&test->workers->worker.stream.net);
    test->sim->auto_time = true;
    timer_set(&test->workers->worker.stream.net.loop, &timer, 1000);
    signals_raise(COMMAND_QUIT);
    worker_run(&test->workers->worker); /* returns when nothing is left */
    ck_assert_uint_eq(dones, 1);
    scripted_finish(&test);
}
END_TEST

static struct threads *volatile left; /* to the end of the process */

START_TEST(a_worker_that_ends_at_once_does_not)
{
    fb_test *test = start_jobs("thread_pool default threads=2;");
    unsigned before = count_threads();

    ck_assert_int_eq(run_job(test, 0, -1), 0);
    ck_assert_int_eq(run_job(test, 0, -1), 0);
    ck_assert_int_eq(run_job(test, 0, -1), 0);
    WAIT_FOR(atomic_load(&going) == 2);
    left = test->workers->worker.threads;
    worker_done(&test->workers->worker);
    /* must not be read any more */
    memset(&test->workers->worker, 0xff, sizeof(test->workers->worker));
    atomic_store(&gate, true);
    WAIT_FOR(atomic_load(&going) == 0);
    /* the threads have seen the end of the loop, and ended */
    WAIT_FOR(count_threads() == before);
    ck_assert_uint_eq(dones, 0);
    _exit(0); /* the jobs' memory is left to the process's end, and no leak */
}
END_TEST

START_TEST(without_memory_for_it)
{
    fb_test *test = start_jobs(NULL);
    struct scripted_conn a = { 0 };

    scripted_conn_open(test, &a);
    fb_test_refuse_memory(test, 0, UINT64_MAX);
    ck_assert_int_eq(run_job(test, 0, 1), -1);
    fb_test_run(test);
    ck_assert_uint_eq(dones, 0);
    scripted_finish(&test);
}
END_TEST

/* ---- worker_start and worker_stop ---- */

struct state {
    int number;
    char padding[5000];
};

static char order[64];
static int start_result;
static int first_jobs; /* jobs of worker_start */
static fb_test *current;

static int proto_start(fb_worker *worker, void *arg)
{
    struct state *state = arg;

    strcat(order, "s");
    for (size_t i = 0; i < sizeof(state->padding); i++)
        test_require(state->padding[i] == 0);
    state->number = 7;
    for (int i = 0; i < first_jobs; i++)
        ck_assert_int_eq(
            fb_run(worker, work_job, finish_job, &(struct job) { .n = 1 }, sizeof(struct job)), 0);
    if (start_result != 0)
        fb_worker_logf(worker, FB_LOG_ALERT, "no database");
    return start_result;
}

static void proto_stop(fb_worker *worker, void *arg)
{
    struct state *state = arg;

    if (first_jobs > 0) /* `done` could not be called any more */
        ck_assert_int_eq(fb_run(worker, work_job, finish_job, NULL, 0), -1);
    else
        ck_assert_int_eq(state->number, 8);
    strcat(order, "e");
}

static int proto_opened(fb_conn *conn, void *arg)
{
    struct state *state = fb_worker_state(conn);

    ck_assert_ptr_null(arg);
    ck_assert_int_eq(state->number++, 7);
    strcat(order, "o");
    return 0;
}

static void proto_closed(fb_conn *conn, void *arg, fb_reason reason)
{
    struct state *state = fb_worker_state(conn);

    (void)arg;
    (void)reason;
    ck_assert_int_eq(state->number, 8);
    strcat(order, "c");
}

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .opened = proto_opened,
    .closed = proto_closed,
};

static const fb_directive directives[] = {
    { .name = "proto", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_protocol proto = {
    FB_PROTOCOL_HEADER,
    .name = "proto",
    FB_PROTOCOL_DIRECTIVES(directives),
    .worker_state = sizeof(struct state),
    .ops = &ops,
    .worker_start = proto_start,
    .worker_stop = proto_stop,
};

/* The servers of a protocol share a state in the worker. */
START_TEST(it_starts_before_and_stops_after_all)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "proto;",
        .stream = "server { listen 192.0.2.80:81; proto; }",
    };

    current = fb_test_start_with(&proto, &options);
    ck_assert_ptr_nonnull(current);
    ck_assert_str_eq(order, "s");
    fb_test_connect(current);
    fb_test_run(current);
    scripted_finish(&current);
    ck_assert_str_eq(order, "soce");
}
END_TEST

START_TEST(it_cannot_start)
{
    static char text[PRINTED_MAX];
    struct printed printed;

    start_result = -1;
    printed_begin(&printed);
    current = fb_test_start(&proto, "proto;");
    printed_end(&printed, text);
    ck_assert_ptr_null(current);
    ck_assert_ptr_nonnull(strstr(text, "no database"));
    ck_assert_ptr_nonnull(strstr(text, "\"proto\" could not start in this worker"));
    ck_assert_str_eq(order, "s"); /* a thread not yet started is not stopped */
    start_result = 0;
    current = fb_test_start(&proto, "proto;");
    ck_assert_ptr_nonnull(current);
    fb_test_connect(current);
    scripted_finish(&current);
}
END_TEST

/* Jobs of worker_start run after the worker's start; after a failed start they are dropped. */
START_TEST(jobs_of_a_start)
{
    const fb_test_options options = {
        .size = sizeof(options), .server = "proto;", .main = "thread_pool default threads=2;"
    };

    loops_thread = pthread_self();
    first_jobs = 5;
    start_result = -_i;
    current = fb_test_start_with(&proto, &options);
    ck_assert_uint_eq(dones, 0);
    if (_i == 0) {
        fb_test_run(current);
        ck_assert_uint_eq(dones, 5);
        ck_assert_int_eq(sum, 10);
        scripted_finish(&current);
    }
    ck_assert_ptr_null(current);
    ck_assert_int_eq(atomic_load(&going), 0);
    ck_assert_str_eq(order, _i == 0 ? "se" : "s");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, done_runs_on_the_loop);
    tcase_add_test(tcase, a_job_without_bytes);
    tcase_add_test(tcase, many_jobs_on_few_threads);
    tcase_add_test(tcase, threads_and_queue_have_an_end);
    tcase_add_test(tcase, the_connection_has_gone_meanwhile);
    tcase_add_test(tcase, a_worker_that_ends_gracefully_waits);
    tcase_add_exit_test(tcase, a_worker_that_ends_at_once_does_not, 0);
    tcase_add_test(tcase, without_memory_for_it);
    tcase_add_test(tcase, it_starts_before_and_stops_after_all);
    tcase_add_test(tcase, it_cannot_start);
    tcase_add_loop_test(tcase, jobs_of_a_start, 0, 2);
}

TEST_MAIN("sdk_jobs", add_tests)

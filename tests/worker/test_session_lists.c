/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of sessions of a worker over the simulated kernel, through a real pipe: all rows; slow,
 * silent, gone and too many readers. */
#include "worker/session_lists.h"

#include "os/files.h"
#include "session/conn.h"
#include "support/fixture_worker.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define CLIENTS 100

static char rows[256 * 1024];
static size_t rows_n;

/* Begins a list, and returns the reading end of a pipe, full or empty. */
static int begin_with(struct fixture *fixture, bool full)
{
    static char bytes[4096];
    int ends[2];

    memset(bytes, 'x', sizeof(bytes));
    ck_assert_int_eq(descriptor_pipe(ends, O_NONBLOCK), 0);
    while (full && write(ends[1], bytes, sizeof(bytes)) > 0) {
    }
    session_lists_begin(fixture->worker, ends[1]);
    return ends[0];
}

static int begin(struct fixture *fixture)
{
    return begin_with(fixture, false);
}

/* Takes what the pipe has; false at the end of the list. */
static bool take_rows(int pipe)
{
    ssize_t n = read(pipe, rows + rows_n, sizeof(rows) - rows_n - 1);

    rows_n += n > 0 ? (size_t)n : 0;
    rows[rows_n] = '\0';
    return n != 0;
}

/* Turns the worker until the list has ended. */
static void read_all(struct fixture *fixture, int pipe)
{
    rows_n = 0;
    for (int i = 0; i < 1000 && take_rows(pipe); i++)
        worker_turn(fixture->worker);
    ck_assert_int_eq(read(pipe, rows, 1), 0);
    close(pipe);
}

static unsigned count_rows(const char *text)
{
    unsigned n = 0;

    for (const char *at = rows; (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

static struct fixture *start(unsigned clients)
{
    struct fixture *fixture =
        fixture_start_worker(&(struct fixture_worker_options) { .connections = CLIENTS + 8 });

    signal(SIGPIPE, SIG_IGN); /* as workers do */
    fixture_connect_clients(fixture, clients);
    fixture_turn_until_open(fixture, clients);
    return fixture;
}

START_TEST(each_session_is_a_row)
{
    struct fixture *fixture = start(CLIENTS);
    char last[64];

    read_all(fixture, begin(fixture));
    ck_assert_uint_eq(count_rows("\"client\":\""), CLIENTS);
    ck_assert_uint_eq(count_rows("\"state\":\"active\",\"waits_for\":\"the client\""), CLIENTS);
    ck_assert_uint_eq(count_rows("\n"), CLIENTS + 1);
    snprintf(last, sizeof(last), "\"sessions\":%d,\"left_out\":0,\"busy\":false}\n", CLIENTS);
    ck_assert_str_eq(rows + rows_n - strlen(last), last);
    ck_assert_uint_eq(fixture->worker->session_lists.n, 0);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_full_pipe_is_tried_again)
{
    struct fixture *fixture = start(CLIENTS);
    int reader = begin_with(fixture, true);

    for (int i = 0; i < 100; i++)
        worker_turn(fixture->worker);
    ck_assert_uint_eq(fixture->worker->session_lists.n, 1);
    read_all(fixture, reader);
    ck_assert_uint_eq(count_rows("\"client\":\""), CLIENTS);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_reader_that_takes_nothing_is_given_up)
{
    struct fixture *fixture = start(CLIENTS);
    int reader = begin_with(fixture, true);
    uint64_t begun = fixture->worker->stream.net.loop.clock.mono_ms;

    while (fixture->worker->session_lists.n > 0) {
        worker_turn(fixture->worker);
        fixture->order[0] = '\0'; /* of many turns */
    }
    ck_assert_uint_ge(fixture->worker->stream.net.loop.clock.mono_ms - begun, 10000);
    close(reader);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_reader_that_goes_ends_the_list)
{
    struct fixture *fixture = start(CLIENTS);
    uint64_t begun = fixture->worker->stream.net.loop.clock.mono_ms;

    close(begin(fixture));
    while (fixture->worker->session_lists.n > 0)
        worker_turn(fixture->worker);
    ck_assert_uint_lt(fixture->worker->stream.net.loop.clock.mono_ms - begun, 1000);
    fixture_stop(fixture);
}
END_TEST

START_TEST(of_many_readers_some_are_told_to_come_again)
{
    struct fixture *fixture = start(1);
    int readers[SESSION_LISTS_MAX + 1];

    for (int i = 0; i <= SESSION_LISTS_MAX; i++)
        readers[i] = begin(fixture);
    ck_assert_uint_eq(fixture->worker->session_lists.n, SESSION_LISTS_MAX);
    close(begin_with(fixture, true)); /* without room for a line: nothing is kept */
    ck_assert_uint_eq(fixture->worker->session_lists.n, SESSION_LISTS_MAX);
    for (int i = 0; i <= SESSION_LISTS_MAX; i++) {
        read_all(fixture, readers[i]);
        ck_assert_uint_eq(count_rows("\"client\":\""), i < SESSION_LISTS_MAX);
        ck_assert_uint_eq(count_rows("\"busy\":true"), i == SESSION_LISTS_MAX);
    }
    fixture_stop(fixture);
}
END_TEST

START_TEST(the_end_of_a_worker_ends_its_lists)
{
    struct fixture *fixture = start(1);
    int reader = begin(fixture);

    fixture_stop(fixture);
    ck_assert_int_eq(read(reader, rows, sizeof(rows)), 0);
    close(reader);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, each_session_is_a_row);
    tcase_add_test(tcase, a_full_pipe_is_tried_again);
    tcase_add_test(tcase, a_reader_that_takes_nothing_is_given_up);
    tcase_add_test(tcase, a_reader_that_goes_ends_the_list);
    tcase_add_test(tcase, of_many_readers_some_are_told_to_come_again);
    tcase_add_test(tcase, the_end_of_a_worker_ends_its_lists);
}

TEST_MAIN("session lists", add_tests)

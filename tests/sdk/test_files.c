/* SPDX-License-Identifier: BSD-2-Clause */
/* fb_read_file() in each way of `aio`: the bytes read, the time of `done`, or no `done`. */
#include "event/file_aio.h"
#include "sdk/scripted_conn.h"
#include "support/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SIZE 300001 /* of the file */
#define READS_MAX 300

static const char *const ways[] = { "aio off;", "aio threads;", "aio on; directio_alignment 512;" };

static uint8_t content[SIZE];

/* The reads reported to `done`, in order. */
static struct {
    uint64_t offset;
    size_t n;
    int error;
} told[READS_MAX];
static unsigned told_n;
static bool sends;                 /* `done` sends what it is given */
static struct scripted_conn *ends; /* the first `done` ends this one */

/* Makes the file, with every byte encoding its position; returns the descriptor. */
static int open_file(int flags)
{
    char path[200];
    int fd;

    snprintf(path, sizeof(path), "%s/content", directory);
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)(i * 7 + i / 251);
    fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(write(fd, content, SIZE), SIZE);
    close(fd);
    fd = open(path, O_RDONLY | flags);
    ck_assert_int_ne(fd, -1);
    return fd;
}

static void note_read(fb_conn *conn, void *state, const fb_file_read *read)
{
    ck_assert_ptr_nonnull(state);
    ck_assert_uint_lt(told_n, READS_MAX);
    told[told_n].offset = read->offset;
    told[told_n].n = read->bytes.n;
    told[told_n++].error = read->error;
    if (read->bytes.n > 0)
        ck_assert_int_eq(memcmp(read->bytes.p, content + read->offset, read->bytes.n), 0);
    if (ends != NULL)
        fb_abort(ends->conn);
    ends = NULL;
    if (sends)
        fb_write(conn, read->bytes.p, read->bytes.n);
}

static void never(fb_conn *conn, void *state, const fb_file_read *read)
{
    (void)conn;
    (void)state;
    (void)read;
    ck_abort_msg("`done` of a connection that takes no reads");
}

static fb_test *start_reads(int way, const char *main)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "scripted;",
        .stream = ways[way],
        .main = main,
    };
    fb_test *test = fb_test_start_with(&fb_protocol_scripted, &options);

    ck_assert_ptr_nonnull(test);
    told_n = 0;
    return test;
}

static void begin(const struct scripted_conn *script, int fd, uint64_t offset, size_t n)
{
    ck_assert_int_eq(fb_read_file(script->conn, fd, offset, n, note_read), 0);
}

static void expect_read(fb_test *test, const struct scripted_conn *script, int fd, uint64_t offset,
    size_t n, size_t got)
{
    unsigned before = told_n;

    begin(script, fd, offset, n);
    ck_assert_uint_eq(told_n, before);
    fb_test_run(test);
    ck_assert_uint_eq(told_n, before + 1);
    ck_assert_int_eq(told[before].error, 0);
    ck_assert_uint_eq(told[before].offset, offset);
    ck_assert_uint_eq(told[before].n, got);
}

static void try_offsets(int way, int flags)
{
    int fd = open_file(flags);
    fb_test *test = start_reads(way, NULL);
    struct scripted_conn a = { 0 };

    scripted_conn_open(test, &a);
    expect_read(test, &a, fd, 0, 1, 1);
    expect_read(test, &a, fd, 0, 4096, 4096);
    expect_read(test, &a, fd, 1, 4096, 4096);
    expect_read(test, &a, fd, 511, 2, 2);
    expect_read(test, &a, fd, 12345, 100000, 100000);
    expect_read(test, &a, fd, 0, SIZE, SIZE);
    expect_read(test, &a, fd, SIZE - 1, 1, 1);
    expect_read(test, &a, fd, SIZE - 10, 4096, 10);
    expect_read(test, &a, fd, 0, FB_READ_MAX, SIZE);
    expect_read(test, &a, fd, SIZE, 10, 0);
    expect_read(test, &a, fd, SIZE + 1000000, 10, 0);
    scripted_finish(&test);
    close(fd);
}

START_TEST(reads_from_any_offset)
{
    try_offsets(_i, 0);
}
END_TEST

START_TEST(reads_past_the_page_cache_too)
{
    try_offsets(_i, O_DIRECT);
}
END_TEST

START_TEST(errors_are_told)
{
    fb_test *test = start_reads(_i, NULL);
    struct scripted_conn a = { 0 };
    int pipes[2];

    ck_assert_int_eq(pipe(pipes), 0);
    scripted_conn_open(test, &a);
    begin(&a, pipes[0], 0, 10);
    begin(&a, 1000, 0, 10);
    fb_test_run(test);
    ck_assert_uint_eq(told_n, 2);
    ck_assert_int_eq(told[0].error + told[1].error, ESPIPE + EBADF);
    ck_assert_uint_eq(told[0].n + told[1].n, 0);
    close(pipes[0]);
    close(pipes[1]);
    scripted_finish(&test);
}
END_TEST

START_TEST(what_cannot_be_read_is_refused)
{
    int fd = open_file(0);
    fb_test *test = start_reads(_i, NULL);
    struct scripted_conn a = { 0 }, b = { 0 }, c = { 0 };

    scripted_conn_open(test, &a);
    scripted_conn_open(test, &b);
    scripted_conn_open(test, &c);
    ck_assert_int_eq(fb_read_file(a.conn, fd, 0, 0, never), -1);
    ck_assert_int_eq(fb_read_file(a.conn, fd, 0, FB_READ_MAX + 1, never), -1);
    ck_assert_int_eq(fb_read_file(a.conn, fd, UINT64_MAX, 1, never), -1);
    fb_test_refuse_memory(test, 0, 1);
    ck_assert_int_eq(fb_read_file(a.conn, fd, 0, 1, never), -1);
    fb_pipe(b.conn, c.conn, NULL);
    ck_assert_int_eq(fb_read_file(b.conn, fd, 0, 1, never), -1);
    fb_close(a.conn);
    ck_assert_int_eq(fb_read_file(a.conn, fd, 0, 1, never), -1);
    fb_test_run(test);
    scripted_finish(&test);
    close(fd);
}
END_TEST

/* The kit counts memory and descriptors. */
START_TEST(a_connection_that_ends_hears_no_more)
{
    fb_test *test = start_reads(_i, NULL);
    int fd = open_file(_i == 2 ? O_DIRECT : 0);
    struct scripted_conn a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };

    scripted_conn_open(test, &a);
    scripted_conn_open(test, &b);
    scripted_conn_open(test, &c);
    scripted_conn_open(test, &d);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(fb_read_file(a.conn, fd, 0, SIZE, never), 0);
        ck_assert_int_eq(fb_read_file(b.conn, fd, 0, SIZE, never), 0);
        ck_assert_int_eq(fb_read_file(c.conn, fd, 0, SIZE, never), 0);
        begin(&d, fd, 0, SIZE);
    }
    fb_abort(a.conn);
    fb_close(b.conn);
    fb_pipe(c.conn, d.conn, NULL);
    net_flush(&test->workers->worker.stream.net);
    ck_assert_uint_eq(a.closings + b.closings, 2);
    close(fd);
    fb_test_run(test);
    ck_assert_uint_eq(told_n, 0);
    scripted_finish(&test);
}
END_TEST

START_TEST(one_ends_another_whose_read_has_ended)
{
    int fd = open_file(0);
    fb_test *test = start_reads(_i, NULL);
    struct scripted_conn a = { 0 }, b = { 0 };

    scripted_conn_open(test, &a);
    scripted_conn_open(test, &b);
    begin(&a, fd, 0, 10);
    begin(&b, fd, 10, 10);
    ends = &b;
    fb_test_run(test);
    ck_assert_uint_eq(told[told_n - 1].offset, 0);
    ck_assert_uint_eq(told_n, told[0].offset == 0 ? 1 : 2);
    ck_assert_uint_eq(b.closings, 1);
    scripted_finish(&test);
    close(fd);
}
END_TEST

START_TEST(many_at_once)
{
    int fd = open_file(_i == 2 ? O_DIRECT : 0);
    fb_test *test = start_reads(_i, "thread_pool default threads=3;");
    struct scripted_conn a = { 0 };
    uint64_t sum = 0;

    scripted_conn_open(test, &a);
    for (uint64_t i = 0; i < READS_MAX; i++)
        begin(&a, fd, i * 1000, 1000);
    fb_test_run(test);
    ck_assert_uint_eq(told_n, READS_MAX);
    for (unsigned i = 0; i < READS_MAX; i++) {
        ck_assert_uint_eq(told[i].n, 1000);
        sum += told[i].offset / 1000;
    }
    ck_assert_uint_eq(sum, (uint64_t)READS_MAX * (READS_MAX - 1) / 2);
    scripted_finish(&test);
    close(fd);
}
END_TEST

START_TEST(a_full_queue_refuses)
{
    int fd = open_file(0);
    fb_test *test = start_reads(1, "thread_pool default threads=1 max_queue=1;");
    struct scripted_conn a = { 0 };
    unsigned taken = 0, refused = 0;

    scripted_conn_open(test, &a);
    for (int i = 0; i < 200; i++)
        if (fb_read_file(a.conn, fd, 0, SIZE, note_read) == 0)
            taken++;
        else
            refused++;
    fb_test_run(test);
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_eq(told_n, taken);
    scripted_finish(&test);
    close(fd);
}
END_TEST

/* Reads with a pool of their own fill only the pool's queue, wherever the pool is declared. */
START_TEST(reads_have_a_pool_of_their_own)
{
    static const char *const own[] = {
        "scripted; aio threads=disk;",
        "scripted; aio threads=default;",
    };
    static const char *const pools[] = {
        "thread_pool disk threads=2; thread_pool default threads=1 max_queue=1;",
        "thread_pool disk threads=1 max_queue=1; thread_pool default threads=2;",
    };
    const fb_test_options options = {
        .size = sizeof(options),
        .server = own[_i % 2],
        .main = pools[_i / 2],
    };
    fb_test *test = fb_test_start_with(&fb_protocol_scripted, &options);
    struct scripted_conn a = { 0 };
    bool is_full = _i % 2 != _i / 2;
    unsigned refused = 0;
    int fd;

    ck_assert_ptr_nonnull(test);
    fd = open_file(0);
    told_n = 0;
    scripted_conn_open(test, &a);
    ck_assert_int_eq(fb_aio_of(a.conn), FB_AIO_THREADS);
    for (int i = 0; i < 200; i++)
        refused += fb_read_file(a.conn, fd, 0, SIZE, note_read) == -1;
    fb_test_run(test);
    ck_assert_int_eq(refused > 0, is_full);
    ck_assert_uint_eq(told_n, 200 - refused);
    close(fd);
    scripted_finish(&test);
}
END_TEST

/* Bytes are not given while much of the output has not been taken. */
START_TEST(done_waits_for_the_output)
{
    int fd = open_file(0);
    fb_test *test = start_reads(_i, NULL);
    struct scripted_conn a = { 0 };
    fb_test_peer *peer = scripted_conn_open(test, &a);
    fb_bytes heard;

    sends = true;
    fb_test_take(peer, 1000);
    begin(&a, fd, 0, 100000);
    fb_test_run(test);
    ck_assert_uint_eq(told_n, 1);
    ck_assert_uint_eq(fb_unsent(a.conn), 99000);
    begin(&a, fd, 100000, 100000);
    begin(&a, fd, 200000, 100000);
    fb_test_run(test);
    ck_assert_uint_eq(told_n, 1);
    fb_test_take(peer, 90000);
    fb_test_run(test);
    ck_assert_uint_eq(told_n, 2);
    fb_test_take(peer, SIZE_MAX);
    fb_test_run(test);
    ck_assert_uint_eq(told_n, 3);
    heard = fb_test_heard(peer);
    ck_assert_uint_eq(heard.n, 300000);
    ck_assert_uint_eq(told[1].offset + told[2].offset, 300000);
    if (told[1].offset < told[2].offset)
        ck_assert_int_eq(memcmp(heard.p, content, heard.n), 0);
    scripted_finish(&test);
    close(fd);
}
END_TEST

/* The end cuts waiting output, and reads waiting for output. */
START_TEST(a_connection_ends_while_done_waits)
{
    int fd = open_file(0);
    fb_test *test = start_reads(_i, NULL);
    struct scripted_conn a = { 0 };
    fb_test_peer *peer = scripted_conn_open(test, &a);

    sends = true;
    fb_test_take(peer, 0);
    begin(&a, fd, 0, 100000);
    fb_test_run(test);
    begin(&a, fd, 0, 100000);
    fb_test_run(test);
    fb_test_reset(peer);
    fb_test_run(test);
    ck_assert_uint_eq(told_n, 1);
    ck_assert_uint_eq(a.closings, 1);
    scripted_finish(&test);
    close(fd);
}
END_TEST

/* Starts a worker with a connection that reads ten bytes. */
static fb_test *start_read_of_ten(int i, struct scripted_conn *conn, int fd)
{
    fb_test *test = start_reads(i, NULL);

    scripted_conn_open(test, conn);
    begin(conn, fd, 0, 10);
    return test;
}

START_TEST(a_client_is_not_awaited_any_more)
{
    struct scripted_conn a = { 0 };
    int fd = open_file(0);
    fb_test *test = start_read_of_ten(_i, &a, fd);

    fb_test_pass(test, 70000);
    ck_assert_uint_eq(told_n, 1);
    ck_assert_uint_eq(a.closings, 0);
    fb_test_pass(test, 600000); /* idle_timeout */
    ck_assert_uint_eq(a.closings, 1);
    scripted_finish(&test);
    close(fd);
}
END_TEST

START_TEST(a_drained_worker_reads_to_the_end)
{
    struct scripted_conn a = { 0 };
    int fd = open_file(0);
    fb_test *test = start_read_of_ten(_i, &a, fd);

    fb_test_drain(test, 0);
    ck_assert_uint_eq(told_n, 1);
    scripted_finish(&test);
    close(fd);
}
END_TEST

/* Without the kernel, which is simulated here. */
START_TEST(the_way_is_told)
{
    static const fb_aio expected[] = { FB_AIO_OFF, FB_AIO_THREADS, FB_AIO_THREADS };
    fb_test *test = start_reads(_i, NULL);
    struct scripted_conn a = { 0 };

    scripted_conn_open(test, &a);
    ck_assert_int_eq(fb_aio_of(a.conn), expected[_i]);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int n = file_aio_built() ? 3 : 2;

    directory_add(tcase);
    tcase_add_loop_test(tcase, reads_from_any_offset, 0, n);
    tcase_add_loop_test(tcase, reads_past_the_page_cache_too, 0, n);
    tcase_add_loop_test(tcase, errors_are_told, 0, n);
    tcase_add_loop_test(tcase, what_cannot_be_read_is_refused, 0, n);
    tcase_add_loop_test(tcase, a_connection_that_ends_hears_no_more, 0, n);
    tcase_add_loop_test(tcase, one_ends_another_whose_read_has_ended, 0, n);
    tcase_add_loop_test(tcase, many_at_once, 0, n);
    tcase_add_test(tcase, a_full_queue_refuses);
    tcase_add_loop_test(tcase, reads_have_a_pool_of_their_own, 0, 4);
    tcase_add_loop_test(tcase, done_waits_for_the_output, 0, n);
    tcase_add_loop_test(tcase, a_connection_ends_while_done_waits, 0, n);
    tcase_add_loop_test(tcase, a_client_is_not_awaited_any_more, 0, n);
    tcase_add_loop_test(tcase, a_drained_worker_reads_to_the_end, 0, n);
    tcase_add_loop_test(tcase, the_way_is_told, 0, n);
}

TEST_MAIN("sdk_files", add_tests)

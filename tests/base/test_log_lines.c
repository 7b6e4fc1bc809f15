/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole lines: how much of them is accepted, and how many are lost. */
#include "base/log_target.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char text[1 << 20];
static struct log_stamp stamp = { .second = -1 };

/* Makes n lines of 16 bytes. */
static struct log_lines make_lines(unsigned n)
{
    ck_assert_uint_lt(16 * n, sizeof(text));
    for (unsigned i = 0; i < n; i++)
        snprintf(text + 16 * i, 17, "line %010u", i % 1000000);
    for (unsigned i = 0; i < n; i++)
        text[16 * i + 15] = '\n';
    return (struct log_lines) { .bytes = text, .n = 16 * (size_t)n, .count = n };
}

/* A pipe of 8 KB without a waiting reader. */
static struct log_target make_pipe(int *reader)
{
    struct log_target target = { .path = "pipe" };
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    ck_assert_int_ge(fcntl(ends[1], F_SETPIPE_SZ, 8192), 8192);
    *reader = ends[0];
    target.fd = ends[1];
    log_target_find_way(&target);
    ck_assert(target.is_pipe);
    return target;
}

static size_t read_all(int reader, char *out, size_t size)
{
    size_t n = 0;
    ssize_t more;

    while ((more = read(reader, out + n, size - n)) > 0)
        n += (size_t)more;
    return n;
}

/* A pipe takes whole lines, as many as it has room for. */
START_TEST(a_pipe_that_is_full)
{
    static char out[1 << 16];
    int reader;
    struct log_target target = make_pipe(&reader);
    struct log_lines lines = make_lines(1000);
    size_t n;

    ck_assert(!log_target_put(&target, &lines, &stamp));
    ck_assert_int_eq(errno, EAGAIN);
    n = read_all(reader, out, sizeof(out));
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_eq(n % 16, 0);
    ck_assert_uint_eq(target.lost, 1000 - n / 16);
    ck_assert_mem_eq(out, text, n);
    ck_assert(!target.torn);
    lines = make_lines(100);
    ck_assert(log_target_put(&target, &lines, &stamp));
    ck_assert_uint_eq(read_all(reader, out, sizeof(out)), 1600);
    close(reader);
    close(target.fd);
}
END_TEST

/* A line that a pipe has taken in part is ended before the next. */
START_TEST(a_line_that_is_torn)
{
    static char out[1 << 16];
    int reader;
    struct log_target target = make_pipe(&reader);
    struct log_lines lines = { .bytes = text, .n = 50000, .count = 1 };

    memset(text, 'x', 50000);
    text[49999] = '\n';
    ck_assert(!log_target_put(&target, &lines, &stamp));
    ck_assert_int_eq(errno, 0);
    ck_assert_uint_eq(target.lost, 1);
    ck_assert(target.torn);
    ck_assert_uint_ge(read_all(reader, out, sizeof(out)), PIPE_BUF);
    lines = make_lines(1);
    ck_assert(log_target_put(&target, &lines, &stamp));
    ck_assert_uint_eq(read_all(reader, out, sizeof(out)), 17);
    ck_assert_int_eq(out[0], '\n');
    ck_assert_mem_eq(out + 1, text, 16);
    ck_assert(!target.torn);
    close(reader);
    close(target.fd);
}
END_TEST

/* Compressed lines have no ends, and are all lost or none. */
START_TEST(packed)
{
    int reader;
    struct log_target target = make_pipe(&reader);
    struct log_lines lines = { .bytes = text, .n = 50000, .count = 70, .packed = true };

    memset(text, '\n', 50000);
    ck_assert(!log_target_put(&target, &lines, &stamp));
    ck_assert_uint_eq(target.lost, 70);
    ck_assert(!target.torn);
    close(reader);
    close(target.fd);
}
END_TEST

START_TEST(a_full_disk)
{
    struct log_target target = { .fd = open("/dev/full", O_WRONLY | O_CLOEXEC), .path = "full" };
    struct log_lines lines = make_lines(3);

    if (target.fd == -1)
        return;
    ck_assert(!log_target_put(&target, &lines, &stamp));
    ck_assert_int_eq(errno, ENOSPC);
    ck_assert_uint_eq(target.lost, 3);
    close(target.fd);
}
END_TEST

START_TEST(a_syslog_server)
{
    static const struct sockaddr_un nowhere = { .sun_family = AF_UNIX };
    struct syslog_server server = { .address = (const struct sockaddr *)&nowhere,
        .name = "unix:/nowhere",
        .host = "",
        .tag = "tag",
        .facility = 1,
        .severity = LEVEL_NOTICE };
    struct log_target target = { .syslog = &server };
    struct log_lines lines = make_lines(1);
    int ends[2];
    char out[128];
    ssize_t n;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
    target.fd = ends[1];
    ck_assert(log_target_put(&target, &lines, &stamp));
    n = recv(ends[0], out, sizeof(out) - 1, 0);
    ck_assert_int_gt(n, 0);
    out[n] = '\0';
    ck_assert_int_eq(strncmp(out, "<13>", 4), 0);
    ck_assert_str_eq(strstr(out, " tag: "), " tag: line 0000000000");
    close(ends[0]);
    ck_assert(!log_target_put(&target, &lines, &stamp));
    ck_assert_uint_eq(target.lost, 1);
    ck_assert(target.broken);
    close(ends[1]);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_pipe_that_is_full);
    tcase_add_test(tcase, a_line_that_is_torn);
    tcase_add_test(tcase, packed);
    tcase_add_test(tcase, a_full_disk);
    tcase_add_test(tcase, a_syslog_server);
}

TEST_MAIN("log_lines", add_tests)

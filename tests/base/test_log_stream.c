/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages on connections that are full, slow, and ended: whole messages, in order, none twice. */
#include "base/log_stream.h"

#include "support/random.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A stream, and the server at the other end of its connection. */
static struct connection {
    struct log_stream *stream;
    int fd, server;
    char bytes[1 << 16]; /* what the server has read, and not taken as messages */
    size_t n;
    unsigned next, got; /* number of the next message, and how many the server has got */
} test;

static void open_connection(void)
{
    int ends[2], size = 4096;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert_int_eq(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
    test.fd = ends[0];
    test.server = ends[1];
    test.n = 0;
    log_stream_open(test.stream);
}

static void close_connection(void)
{
    close(test.fd);
    close(test.server);
}

static void begin(void)
{
    memset(&test, 0, sizeof(test));
    test.stream = log_stream_create();
    ck_assert_ptr_nonnull(test.stream);
    ck_assert_int_eq(log_stream_phase(test.stream), LOG_STREAM_DOWN);
    open_connection();
}

static void end(void)
{
    close_connection();
    log_stream_destroy(&test.stream);
    ck_assert_ptr_null(test.stream);
}

static bool put(const char *head, const char *line, size_t n)
{
    struct iovec parts[2] = { { (char *)head, strlen(head) }, { (char *)line, n } };

    return log_stream_put(test.stream, test.fd, parts, 2);
}

/* Puts a message with a number, of a length by the number. */
static bool put_numbered(void)
{
    static char line[1000];
    char head[16];

    memset(line, ' ', sizeof(line)); /* as between length and message */
    snprintf(head, sizeof(head), "%u:", test.next);
    return put(head, line, test.next * 37 % sizeof(line)) && ++test.next > 0;
}

/* Takes a message off the bytes; false: there is no whole one. A length is followed by a space, and
 * the number within is greater than any before. */
static bool take_message(void)
{
    char *rest;
    size_t n = strtoul(test.bytes, &rest, 10), head;
    unsigned number;

    test.bytes[test.n] = '\0';
    if (test.n < 16 && memchr(test.bytes, ' ', test.n) == NULL)
        return false;
    ck_assert_msg(rest > test.bytes && *rest == ' ', "no length: %.20s", test.bytes);
    head = (size_t)(rest + 1 - test.bytes);
    if (test.n < head + n)
        return false;
    number = (unsigned)strtoul(test.bytes + head, &rest, 10);
    ck_assert_int_eq(*rest, ':');
    ck_assert_uint_ge(number, test.got);
    ck_assert_uint_lt(number, test.next + 1);
    ck_assert_uint_eq(n, (size_t)(rest + 1 - test.bytes) - head + number * 37 % 1000);
    test.got = number + 1;
    test.n -= head + n;
    memmove(test.bytes, test.bytes + head + n, test.n);
    return true;
}

/* Reads up to so many bytes; returns the number of messages. */
static unsigned read_messages(size_t most)
{
    size_t room = sizeof(test.bytes) - 1 - test.n;
    ssize_t n = recv(test.server, test.bytes + test.n, most < room ? most : room, 0);
    unsigned count = 0;

    if (n > 0)
        test.n += (size_t)n;
    test.bytes[test.n] = '\0';
    while (test.n > 0 && take_message())
        count++;
    return count;
}

START_TEST(a_length_is_in_front)
{
    begin();
    ck_assert(put("<1>", "line\n2", 6));
    ck_assert(put("", "", 0));
    ck_assert_int_eq(recv(test.server, test.bytes, sizeof(test.bytes), 0), 13);
    ck_assert_int_eq(memcmp(test.bytes, "9 <1>line\n20 ", 13), 0);
    ck_assert(!log_stream_waits(test.stream));
    ck_assert_int_eq(log_stream_phase(test.stream), LOG_STREAM_UP);
    end();
}
END_TEST

/* Lines wait, up to the limit, and then are lost; all that wait come when there is room. */
START_TEST(a_slow_server)
{
    begin();
    while (put_numbered())
        ck_assert_uint_lt(test.next, 100000);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_uint_gt(test.next, LOG_STREAM_SIZE / 1024);
    ck_assert(log_stream_waits(test.stream));
    while (test.got < test.next) {
        read_messages(SIZE_MAX);
        log_stream_flush(test.stream, test.fd);
    }
    ck_assert(!log_stream_waits(test.stream));
    ck_assert_uint_eq(test.n, 0);
    ck_assert(put_numbered());
    ck_assert_uint_eq(read_messages(SIZE_MAX), 1);
    end();
}
END_TEST

/* A message that the old connection took in part is whole on the new one. */
START_TEST(a_new_connection_begins_with_a_whole_message)
{
    unsigned first;

    begin();
    while (!log_stream_waits(test.stream))
        ck_assert(put_numbered());
    for (unsigned i = 0; i < 10; i++)
        ck_assert(put_numbered());
    while (read_messages(SIZE_MAX) > 0)
        continue;
    first = test.got;
    close_connection();
    open_connection();
    log_stream_flush(test.stream, test.fd);
    while (test.got < test.next) {
        read_messages(SIZE_MAX);
        log_stream_flush(test.stream, test.fd);
    }
    ck_assert_uint_gt(first, 0);
    ck_assert_uint_le(first, test.next - 10);
    end();
}
END_TEST

/* The end is found before a line is given to the connection, so that the line is not lost. */
START_TEST(the_end_of_the_server)
{
    begin();
    ck_assert(put_numbered());
    ck_assert_uint_eq(read_messages(SIZE_MAX), 1);
    ck_assert_int_eq(send(test.server, "?", 1, 0), 1); /* is dropped */
    ck_assert(put_numbered());
    ck_assert_uint_eq(read_messages(SIZE_MAX), 1);
    close(test.server);
    ck_assert(put_numbered());
    ck_assert_int_eq(log_stream_phase(test.stream), LOG_STREAM_DOWN);
    ck_assert_int_eq(log_stream_error(test.stream), EPIPE);
    ck_assert(put_numbered());
    close(test.fd);
    open_connection();
    log_stream_flush(test.stream, test.fd);
    ck_assert_uint_eq(read_messages(SIZE_MAX), 2);
    end();
}
END_TEST

START_TEST(lines_that_are_dropped_are_counted)
{
    static char line[LOG_STREAM_SIZE];
    unsigned n = 0;

    begin();
    ck_assert(!put("", line, sizeof(line)));
    ck_assert_int_eq(errno, EMSGSIZE);
    close(test.server);
    while (put("", line, 100000))
        n++;
    ck_assert_uint_eq(n, LOG_STREAM_SIZE / 100007);
    ck_assert_int_eq(errno, EPIPE);
    ck_assert_uint_eq(log_stream_drop(test.stream), n);
    ck_assert_uint_eq(log_stream_drop(test.stream), 0);
    ck_assert(put("", line, sizeof(line) - 12));
    ck_assert_uint_eq(log_stream_drop(test.stream), 1);
    close(test.fd);
    open_connection();
    end();
}
END_TEST

/* A reload's stream takes over waiting messages, as far as there is room. */
START_TEST(lines_move_to_another_stream)
{
    struct log_stream *before;

    begin();
    before = test.stream;
    while (put_numbered())
        ck_assert_uint_lt(test.next, 100000);
    close_connection();
    test.stream = log_stream_create();
    ck_assert_uint_eq(log_stream_move(before, test.stream), 0);
    ck_assert(!log_stream_waits(before));
    open_connection();
    while (test.got < test.next) {
        log_stream_flush(test.stream, test.fd);
        read_messages(SIZE_MAX);
    }
    log_stream_destroy(&before);
    end();
}
END_TEST

/* A forked process sends nothing for its parent. */
START_TEST(a_forked_process_begins_anew)
{
    int status;
    pid_t pid;

    begin();
    while (!log_stream_waits(test.stream))
        ck_assert(put_numbered());
    ck_assert(!log_stream_separate(test.stream));
    pid = fork();
    if (pid == 0)
        _exit(log_stream_separate(test.stream) && !log_stream_waits(test.stream) &&
                      log_stream_phase(test.stream) == LOG_STREAM_DOWN
                  ? 0
                  : 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert(log_stream_waits(test.stream));
    end();
}
END_TEST

/* Sends and reads pieces, and ends connections, by chance: take_message() looks at all messages. */
START_TEST(random_connections)
{
    uint64_t state = random_seed() + (uint64_t)_i;

    begin();
    for (unsigned i = 0; i < 3000; i++) {
        if (random_below(&state, 3) > 0)
            put_numbered();
        else if (random_below(&state, 100) > 0)
            read_messages(random_below(&state, 3000));
        else
            log_stream_flush(test.stream, test.fd);
        if (random_below(&state, 200) == 0) {
            close_connection();
            open_connection();
        }
    }
    log_stream_finish(test.stream, test.fd, 1);
    ck_assert_uint_gt(test.got, 0);
    end();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_length_is_in_front);
    tcase_add_test(tcase, a_slow_server);
    tcase_add_test(tcase, a_new_connection_begins_with_a_whole_message);
    tcase_add_test(tcase, the_end_of_the_server);
    tcase_add_test(tcase, lines_that_are_dropped_are_counted);
    tcase_add_test(tcase, lines_move_to_another_stream);
    tcase_add_test(tcase, a_forked_process_begins_anew);
    tcase_add_loop_test(tcase, random_connections, 0, 20);
}

TEST_MAIN("log_stream", add_tests)

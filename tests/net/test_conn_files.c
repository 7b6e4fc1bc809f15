/* SPDX-License-Identifier: BSD-2-Clause */
/* Files as output, and the order of output of all kinds. */
#include "support/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PERIOD 251

/* A file of n bytes of a pattern. */
static int make_file(size_t n)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    uint8_t bytes[PERIOD * 16];

    ck_assert_int_ne(fd, -1);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i % PERIOD);
    while (n > 0) {
        size_t part = n < sizeof(bytes) ? n : sizeof(bytes);

        ck_assert_int_eq(write(fd, bytes, part), (ssize_t)part);
        n -= part;
    }
    return fd;
}

static void check_pattern(const struct owner *owner, size_t from, size_t n)
{
    size_t i = 0;

    ck_assert_uint_eq(owner->socket->sent_n, n);
    while (i < n && owner->socket->sent[i] == (uint8_t)((from + i) % PERIOD))
        i++;
    ck_assert_uint_eq(i, n);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) != -1;
}

/* The connection has closed the file; the next owner of the number keeps the number. */
static int reuse_number(int fd)
{
    int again;

    ck_assert(!is_open(fd));
    again = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, fd);
    ck_assert_int_eq(again, fd);
    return again;
}

static void end_all(struct fixture *fixture, struct owner **owner)
{
    fixture_end_all(fixture);
    owner_free(owner);
    fixture_stop(fixture);
}

START_TEST(a_file_is_sent_whole)
{
    static const size_t sizes[] = { 1, PERIOD, 4096, 3 * 1024 * 1024 + 1, 20 * 1024 * 1024 };
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 1);
    struct owner *a = owner_open(fixture);
    size_t n = sizes[_i / FIXTURE_EVENTS];
    int fd = make_file(n);

    ck_assert_int_eq(conn_write_file(a->conn, fd, 0, n), 0);
    ck_assert_uint_eq(a->conn->unsent, n);
    fixture_settle(fixture);
    fixture_run(fixture);
    check_pattern(a, 0, n);
    ck_assert_uint_eq(a->conn->unsent, 0);
    ck_assert_uint_eq(a->conn->sent, n);
    fd = reuse_number(fd);
    end_all(fixture, &a);
    ck_assert_int_eq(close(fd), 0);
}
END_TEST

START_TEST(a_part_of_a_file_to_a_slow_reader)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);
    int fd = make_file(100000);

    sim_set_room(a->socket, 0);
    a->socket->send_most = 777;
    conn_write_file(a->conn, fd, 12345, 50000);
    fixture_settle(fixture);
    fixture_run(fixture);
    ck_assert_uint_eq(a->socket->sent_n, 0);
    for (int i = 0; i < 50; i++) {
        ck_assert(is_open(fd));
        sim_set_room(a->socket, 1000);
        fixture_run(fixture);
    }
    check_pattern(a, 12345, 50000);
    ck_assert_uint_eq(a->writables, 0);
    fd = reuse_number(fd);
    end_all(fixture, &a);
    ck_assert_int_eq(close(fd), 0);
}
END_TEST

START_TEST(a_large_file_holds_input_back)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);

    sim_set_room(a->socket, 0);
    conn_write_file(a->conn, make_file(100000), 0, 100000);
    fixture_settle(fixture);
    sim_says(a->socket, "later");
    fixture_run(fixture);
    ck_assert_uint_eq(a->datas, 0);
    sim_set_room(a->socket, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_uint_eq(a->writables, 1);
    ck_assert_uint_eq(a->datas, 1);
    end_all(fixture, &a);
}
END_TEST

START_TEST(a_file_that_ends_early_is_an_error)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);
    int fd = make_file(1000);

    conn_write_file(a->conn, fd, 0, 1001);
    conn_write(a->conn, "behind", 6);
    fixture_settle(fixture);
    fixture_run(fixture);
    ck_assert_uint_eq(a->closings, 1);
    ck_assert_int_eq(a->reason, FB_IO_ERROR);
    check_pattern(a, 0, 1000);
    ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), "file"));
    fd = reuse_number(fd);
    end_all(fixture, &a);
    ck_assert_int_eq(close(fd), 0);
}
END_TEST

START_TEST(a_file_is_closed_when_the_connection_breaks)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);
    int fd = make_file(1000), later = make_file(10);

    sim_set_room(a->socket, 500);
    conn_write_file(a->conn, fd, 0, 1000);
    conn_write_file(a->conn, later, 0, 10);
    fixture_settle(fixture);
    fixture_run(fixture);
    sim_break(a->socket, ECONNRESET);
    fixture_run(fixture);
    ck_assert_int_eq(a->reason, FB_RESET);
    fixture_logged(fixture);
    ck_assert(!is_open(later));
    fd = reuse_number(fd);
    end_all(fixture, &a);
    ck_assert_int_eq(close(fd), 0);
}
END_TEST

START_TEST(a_close_sends_the_file_first)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);

    sim_set_room(a->socket, 0);
    conn_write_file(a->conn, make_file(2000000), 0, 2000000);
    conn_close(a->conn);
    fixture_settle(fixture);
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(a->closings, 0);
        sim_set_room(a->socket, 500000);
        fixture_run(fixture);
    }
    ck_assert_int_eq(a->reason, FB_FINISHED);
    check_pattern(a, 0, 2000000);
    end_all(fixture, &a);
}
END_TEST

/* ---- All kinds ---- */

static unsigned releases;

/* Releases come in the order of the loans. */
static void count_release(void *arg)
{
    ck_assert_uint_eq((uintptr_t)arg, releases++);
}

/* 26 letters in pieces of all kinds, some beside their like, of lengths from 0 to 3. */
static size_t write_letters(struct owner *owner, fb_bytes in)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    static const char kinds[] = "ovrfoovvrrffovorofvrvfrforovfr";
    static const unsigned lengths[] = { 1, 2, 0, 1, 3, 1, 0 };
    uintptr_t refs = 0;
    unsigned i = 0;

    ck_assert_uint_eq(in.n, 26);
    for (size_t at = 0; at < 26; i++) {
        size_t n = lengths[i % 7] < 26 - at ? lengths[i % 7] : 26 - at;
        int fd;

        switch (kinds[i % (sizeof(kinds) - 1)]) {
        case 'o':
            conn_write(owner->conn, letters + at, n);
            break;
        case 'v':
            conn_write(owner->conn, in.p + at, n);
            break;
        case 'r':
            refs += conn_write_ref(owner->conn, letters + at, n, count_release, (void *)refs) == 0;
            break;
        default:
            fd = memfd_create("letters", MFD_CLOEXEC);
            ck_assert_int_eq(write(fd, letters, 26), 26);
            if (conn_write_file(owner->conn, fd, at, n) == -1)
                close(fd);
        }
        at += n;
    }
    owner->n = refs;
    return in.n;
}

/* However few bytes are taken at a time, and however the rest has to be copied out of the input. */
START_TEST(the_order_is_that_of_the_calls)
{
    static const size_t mosts[] = { 1, 2, 3, 5, 7, 26 };
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 2);
    struct owner *a = owner_open(fixture), *noise = owner_open(fixture);

    releases = 0;
    a->data = write_letters;
    sim_set_room(a->socket, 0);
    a->socket->send_most = mosts[_i / FIXTURE_EVENTS];
    sim_says(a->socket, "abcdefghijklmnopqrstuvwxyz");
    fixture_run(fixture);
    ck_assert_uint_eq(a->conn->unsent, 26);
    ck_assert_uint_eq(releases, 0);
    sim_says(noise->socket, "##########################");
    fixture_run(fixture);
    for (size_t n = 0; n <= 26 + mosts[_i / FIXTURE_EVENTS]; n += mosts[_i / FIXTURE_EVENTS]) {
        sim_set_room(a->socket, mosts[_i / FIXTURE_EVENTS]);
        fixture_run(fixture);
    }
    ck_assert_str_eq(owner_sent(a), "abcdefghijklmnopqrstuvwxyz");
    ck_assert_uint_eq(a->conn->unsent, 0);
    ck_assert_uint_ge(releases, 5);
    ck_assert_uint_eq(releases, a->n);
    fixture_end_all(fixture);
    owner_free(&noise);
    end_all(fixture, &a);
}
END_TEST

START_TEST(many_pieces_leave_in_order)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);
    static uint8_t bytes[3000];

    releases = 0;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i % PERIOD);
    for (size_t i = 0; i < sizeof(bytes); i++)
        ck_assert_int_eq(
            conn_write_ref(a->conn, bytes + i, 1, count_release, (void *)(uintptr_t)i), 0);
    fixture_settle(fixture);
    fixture_run(fixture);
    check_pattern(a, 0, sizeof(bytes));
    ck_assert_uint_eq(releases, sizeof(bytes));
    ck_assert_uint_le(a->socket->sends, sizeof(bytes) / 64 + 1);
    end_all(fixture, &a);
}
END_TEST

/* Blocks of memory that the letters need: all are in use at once. */
#define LETTERS_BLOCKS 15

/* Without memory a reference or a file is refused, and what has to be copied ends the connection.
 * Nothing of the rest is lost track of. */
START_TEST(without_memory_all_is_given_back)
{
    struct fixture *fixture = fixture_start_net(0, 1);
    struct owner *a = owner_open(fixture);

    releases = 0;
    a->data = write_letters;
    sim_set_room(a->socket, 0);
    sim_says(a->socket, "abcdefghijklmnopqrstuvwxyz");
    fixture->memory.until_failure = (unsigned)_i;
    fixture_run(fixture);
    ck_assert_int_eq(fixture->memory.failures > 0, _i < LETTERS_BLOCKS);
    ck_assert_int_le(a->closings, fixture->memory.failures > 0);
    if (a->closings > 0)
        ck_assert_int_eq(a->reason, FB_NO_MEMORY);
    fixture->memory.until_failure = UINT32_MAX;
    fixture_end_all(fixture);
    ck_assert_uint_eq(releases, a->n);
    end_all(fixture, &a);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_file_is_sent_whole, 0, 5 * FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_part_of_a_file_to_a_slow_reader, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_large_file_holds_input_back, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_file_that_ends_early_is_an_error, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_file_is_closed_when_the_connection_breaks, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_close_sends_the_file_first, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, the_order_is_that_of_the_calls, 0, 6 * FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, many_pieces_leave_in_order, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, without_memory_all_is_given_back, 0, LETTERS_BLOCKS + 1);
}

TEST_MAIN("conn_files", add_tests)

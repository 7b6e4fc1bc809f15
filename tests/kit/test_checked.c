/* SPDX-License-Identifier: BSD-2-Clause */
/* Correct uses of the SDK, unchanged by the checked mode, always on in the kit. */
#include "support/test.h"

#include <fcntl.h>
#include <forkbeard/test.h>
#include <unistd.h>

static int file = -1;

static void first_is_done(fb_conn *conn, void *state, const fb_file_read *read)
{
    (void)state, (void)read;
    fb_write(conn, "1", 1);
}

static void second_is_done(fb_conn *conn, void *state, const fb_file_read *read)
{
    (void)state, (void)read;
    fb_write(conn, "2", 1);
}

static void never_is_done(fb_conn *conn, void *state, const fb_file_read *read)
{
    (void)state, (void)read;
    fb_write(conn, "never", 5);
}

/* Reads the same bytes twice; without memory the connection ends. */
static void read_twice(fb_conn *conn)
{
    if (fb_read_file(conn, file, 0, 1, first_is_done) == -1 ||
        fb_read_file(conn, file, 0, 1, second_is_done) == -1)
        fb_abort(conn);
}

static size_t other_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    read_twice(conn);
    return in.n;
}

static const fb_ops other_ops = { .size = sizeof(fb_ops), .data = other_data };

/* "b" gives the connection away, with a read ended by the hand-over. */
static size_t reader_data(fb_conn *conn, void *state, fb_bytes in)
{
    if (in.p[0] != 'b') {
        read_twice(conn);
        return in.n;
    }
    if (fb_read_file(conn, file, 0, 1, never_is_done) == -1 ||
        fb_become(conn, &other_ops, state) == -1)
        fb_abort(conn);
    return in.n;
}

static const fb_ops reader_ops = { .size = sizeof(fb_ops), .data = reader_data };

static const fb_directive reader_directives[] = {
    { .name = "reader", .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(reader) = {
    FB_PROTOCOL_HEADER,
    .name = "reader",
    FB_PROTOCOL_DIRECTIVES(reader_directives),
    .ops = &reader_ops,
};

static void converse(const fb_test_step *script, size_t n)
{
    file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ne(file, -1);
    ck_assert_int_eq(fb_test_converse(&fb_protocol_reader, "reader;", script, n), 0);
    close(file);
}

START_TEST(reads_of_one_offset_have_callbacks_of_their_own)
{
    static const fb_test_step script[] = { FB_TEST_SAY("r"), FB_TEST_EXPECT("12") };

    converse(FB_TEST_SCRIPT(script));
}
END_TEST

START_TEST(reads_end_with_other_callbacks)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("b"),
        FB_TEST_SAY("r"),
        FB_TEST_EXPECT("12"),
    };

    converse(FB_TEST_SCRIPT(script));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, reads_of_one_offset_have_callbacks_of_their_own);
    tcase_add_test(tcase, reads_end_with_other_callbacks);
}

TEST_MAIN("checked", add_tests)

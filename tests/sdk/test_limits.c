/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of a connection: the output waiting for a slow peer, and the input for the protocol. */
#include "sdk/scripted_conn.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT (100 * 1024)

static char bytes[8 * LIMIT];
static struct scripted_conn script;
static fb_test_peer *peer;

/* A client that takes nothing. */
static fb_test *start_clogged(const char *directives)
{
    fb_test *test = scripted_start_with(directives);

    script = (struct scripted_conn) { .letter = 'a' };
    peer = scripted_conn_open(test, &script);
    fb_test_take(peer, 0);
    return test;
}

static void write_bytes(fb_test *test, size_t n)
{
    fb_write(script.conn, bytes, n);
    scripted_settle(test);
}

static void check_cut_off(fb_test *test)
{
    ck_assert_uint_eq(script.closings, 1);
    ck_assert_int_eq(script.reason, FB_OUTPUT_LIMIT);
    ck_assert_int_eq(fb_test_was_reset(peer), 1);
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "the protocol goes on to write"));
}

START_TEST(the_protocol_is_asked_to_stop_and_to_go_on)
{
    fb_test *test = start_clogged("output_limit 100k;");

    for (unsigned i = 1; i <= 3; i++) {
        write_bytes(test, LIMIT - 1);
        ck_assert_uint_eq(script.unwritables, i - 1);
        write_bytes(test, 1);
        ck_assert_uint_eq(script.unwritables, i);
        write_bytes(test, 1);
        ck_assert_uint_eq(script.unwritables, i); /* once */
        ck_assert_uint_eq(script.writables, i - 1);
        fb_test_take(peer, SIZE_MAX);
        scripted_settle(test);
        ck_assert_uint_eq(script.writables, i);
        fb_test_take(peer, 0);
    }
    ck_assert_uint_eq(script.closings, 0);
    scripted_finish(&test);
}
END_TEST

START_TEST(who_goes_on_is_cut_off)
{
    fb_test *test = start_clogged("output_limit 100k;");
    unsigned writes = 0;

    for (; script.conn != NULL && writes < 1000; writes++)
        write_bytes(test, 1024);
    ck_assert_uint_eq(script.unwritables, 1);
    ck_assert_uint_eq(writes, 2 * LIMIT / 1024 + 1);
    check_cut_off(test);
    scripted_finish(&test);
}
END_TEST

static void release(void *arg)
{
    ++*(unsigned *)arg;
}

static void add_copy(unsigned *released)
{
    (void)released;
    fb_write(script.conn, bytes, 1000);
}

static void add_pieces(unsigned *released)
{
    const fb_bytes pieces[] = { { (const uint8_t *)bytes, 300 }, { (const uint8_t *)bytes, 700 } };

    (void)released;
    fb_writev(script.conn, pieces, 2);
}

static void add_reference(unsigned *released)
{
    if (fb_write_ref(script.conn, bytes, 1000, release, released) == -1)
        ++*released;
}

static void (*const adders[])(unsigned *released) = { add_copy, add_pieces, add_reference };

/* Within one callback nobody can be asked. */
START_TEST(who_writes_without_end_is_cut_off_at_once)
{
    fb_test *test = start_clogged("output_limit 100k;");
    unsigned released = 0;
    size_t most = 0;

    for (int i = 0; i < 10000; i++) {
        adders[_i](&released);
        most = fb_unsent(script.conn) > most ? fb_unsent(script.conn) : most;
    }
    ck_assert_uint_lt(most, 2 * LIMIT + 1000);
    scripted_settle(test);
    ck_assert_uint_eq(released, adders[_i] == add_reference ? 10000 : 0);
    check_cut_off(test);
    scripted_finish(&test);
}
END_TEST

START_TEST(a_single_piece_may_be_larger)
{
    fb_test *test = start_clogged("output_limit 100k;");

    write_bytes(test, sizeof(bytes));
    ck_assert_uint_eq(script.unwritables, 1);
    scripted_settle(test);
    ck_assert_uint_eq(script.closings, 0);
    fb_test_take(peer, SIZE_MAX);
    scripted_settle(test);
    ck_assert_uint_eq(script.writables, 1);
    ck_assert_uint_eq(fb_test_heard(peer).n, sizeof(bytes));
    scripted_finish(&test);
}
END_TEST

static int big_file(off_t n)
{
    char path[] = "/tmp/test_limits.XXXXXX";
    int fd = mkstemp(path);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(ftruncate(fd, n), 0);
    return fd;
}

START_TEST(files_do_not_count)
{
    fb_test *test = start_clogged("output_limit 100k;");

    fb_write(script.conn, bytes, 50 * 1024);
    ck_assert_int_eq(fb_send_file(script.conn, big_file(1 << 30), 0, 1 << 30), 0);
    scripted_settle(test);
    write_bytes(test, 50 * 1024 - 1);
    ck_assert_uint_eq(script.unwritables, 0);
    write_bytes(test, 1);
    ck_assert_uint_eq(script.unwritables, 1);
    for (int i = 0; i < 100; i++)
        write_bytes(test, 1024);
    ck_assert_uint_eq(script.closings, 0);
    write_bytes(test, 1);
    check_cut_off(test);
    scripted_finish(&test);
}
END_TEST

static size_t pass_on(struct scripted_conn *from, fb_bytes in)
{
    fb_write(from->other->conn, in.p, in.n);
    return in.n;
}

/* Output within the input of another connection is not copied at first. */
START_TEST(what_is_passed_on_counts)
{
    fb_test *test = start_clogged("output_limit 100k;");
    struct scripted_conn from = { .data = pass_on, .other = &script };
    fb_test_peer *sender = scripted_conn_open(test, &from);
    size_t n = 0;

    for (; script.conn != NULL && n < sizeof(bytes); n += 4096) {
        fb_test_say(sender, bytes, 4096);
        fb_test_run(test);
    }
    ck_assert_uint_eq(script.unwritables, 1);
    ck_assert_uint_le(n, 2 * LIMIT + 2 * 4096);
    check_cut_off(test);
    from.data = NULL;
    scripted_finish(&test);
}
END_TEST

static void write_more(struct scripted_conn *a)
{
    fb_write(a->conn, bytes, 1);
}

START_TEST(a_callback_may_write)
{
    fb_test *test = start_clogged("output_limit 100k;");

    script.unwritable = write_more;
    write_bytes(test, LIMIT);
    ck_assert_uint_eq(script.unwritables, 1);
    ck_assert_uint_eq(fb_unsent(script.conn), LIMIT + 1);
    fb_test_take(peer, SIZE_MAX);
    scripted_settle(test);
    ck_assert_uint_eq(fb_test_heard(peer).n, LIMIT + 1);
    scripted_finish(&test);
}
END_TEST

/* Output added by `writable` is sent at once, and the client is counted in its new state. */
START_TEST(a_few_bytes_are_added_when_there_is_room)
{
    fb_test *test = start_clogged("output_limit 100k;");
    fb_statistics statistics = { .size = sizeof(statistics) };

    script.writable = write_more;
    write_bytes(test, LIMIT);
    fb_get_statistics(fb_test_worker(test), &statistics);
    ck_assert_uint_eq(statistics.writing, 1);
    fb_test_take(peer, SIZE_MAX);
    ck_assert_uint_eq(fb_test_heard(peer).n, LIMIT + 1);
    ck_assert_uint_eq(script.writables, 1);
    fb_get_statistics(fb_test_worker(test), &statistics);
    ck_assert_uint_eq(statistics.writing, 0);
    scripted_finish(&test);
}
END_TEST

static void close_now(struct scripted_conn *a)
{
    fb_close(a->conn);
}

static void abort_now(struct scripted_conn *a)
{
    fb_abort(a->conn);
}

START_TEST(a_callback_may_end_the_connection)
{
    fb_test *test = start_clogged("output_limit 100k;");

    script.unwritable = _i == 0 ? close_now : abort_now;
    write_bytes(test, LIMIT);
    fb_test_take(peer, SIZE_MAX);
    scripted_settle(test);
    ck_assert_int_eq(script.reason, _i == 0 ? FB_FINISHED : FB_ABORTED);
    ck_assert_uint_eq(fb_test_heard(peer).n, _i == 0 ? LIMIT : 0);
    scripted_finish(&test);
}
END_TEST

/* The limit of connections to servers is the client's server's. */
START_TEST(connections_to_servers_have_it)
{
    fb_test *test = start_clogged("output_limit 100k;");
    struct scripted_conn to = { 0 };
    fb_test_peer *server = scripted_conn_connect(test, &script, &to);

    fb_test_take(server, 0);
    fb_write(to.conn, bytes, LIMIT);
    scripted_settle(test);
    ck_assert_uint_eq(to.unwritables, 1);
    fb_write(to.conn, bytes, LIMIT);
    fb_write(to.conn, bytes, 1);
    scripted_settle(test);
    ck_assert_int_eq(to.reason, FB_OUTPUT_LIMIT);
    ck_assert_uint_eq(script.closings, 0);
    scripted_finish(&test);
}
END_TEST

static const struct {
    const char *directives;
    uint64_t descriptor;
    size_t at; /* 0: never */
} limits[] = {
    { "", 0, 64 * 1024 * 1024 },
    { "", 1024 * 1024, 1024 * 1024 },
    { "", UINT64_MAX, 0 },
    { "output_limit 2m;", UINT64_MAX, 2 * 1024 * 1024 },
    { "output_limit off;", 1024 * 1024, 0 },
};

START_TEST(who_sets_it)
{
    enum { PIECE = 512 * 1024, MOST = 80 * 1024 * 1024 };
    fb_protocol protocol = fb_protocol_scripted;
    char server[128];
    unsigned released = 0;
    fb_test *test;
    size_t n = 0;

    protocol.output_limit = limits[_i].descriptor;
    snprintf(server, sizeof(server), "scripted; %s", limits[_i].directives);
    test = fb_test_start(&protocol, server);
    ck_assert_ptr_nonnull(test);
    script = (struct scripted_conn) { 0 };
    peer = scripted_conn_open(test, &script);
    fb_test_take(peer, 0);
    for (; n < MOST && script.unwritables == 0; n += PIECE) {
        fb_write_ref(script.conn, bytes, PIECE, release, &released);
        scripted_settle(test);
    }
    ck_assert_uint_eq(n, limits[_i].at > 0 ? limits[_i].at : MOST);
    fb_abort(script.conn);
    scripted_settle(test);
    scripted_finish(&test);
}
END_TEST

START_TEST(input_has_the_limit_of_its_server)
{
    fb_test *test = scripted_start_with(_i == 0 ? "input_limit 10;" : "input_limit 100k;");
    size_t limit = _i == 0 ? 10 : LIMIT;

    script = (struct scripted_conn) { .data = scripted_leave_input };
    peer = scripted_conn_open(test, &script);
    fb_test_say(peer, bytes, limit - 1);
    fb_test_run(test);
    ck_assert_uint_eq(script.closings, 0);
    fb_test_say(peer, bytes, 1);
    fb_test_run(test);
    ck_assert_int_eq(script.reason, FB_INPUT_LIMIT);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_protocol_is_asked_to_stop_and_to_go_on);
    tcase_add_test(tcase, who_goes_on_is_cut_off);
    tcase_add_loop_test(tcase, who_writes_without_end_is_cut_off_at_once, 0, (int)countof(adders));
    tcase_add_test(tcase, a_single_piece_may_be_larger);
    tcase_add_test(tcase, files_do_not_count);
    tcase_add_test(tcase, what_is_passed_on_counts);
    tcase_add_test(tcase, a_callback_may_write);
    tcase_add_test(tcase, a_few_bytes_are_added_when_there_is_room);
    tcase_add_loop_test(tcase, a_callback_may_end_the_connection, 0, 2);
    tcase_add_test(tcase, connections_to_servers_have_it);
    tcase_add_loop_test(tcase, who_sets_it, 0, (int)countof(limits));
    tcase_add_loop_test(tcase, input_has_the_limit_of_its_server, 0, 2);
}

TEST_MAIN("sdk_limits", add_tests)

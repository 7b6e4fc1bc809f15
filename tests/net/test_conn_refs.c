/* SPDX-License-Identifier: BSD-2-Clause */
/* Output sent from its place: memory of the owner, with a notice after the last use, and files; and
 * output sent before the callback returns. */
#include "net/conn_flush.h"
#include "support/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

/* Memory that was lent to a connection. */
struct lent {
    struct fixture *fixture;
    unsigned releases;
    struct owner *owner; /* owner that writes "again" at the release */
};

static bool calling; /* a call runs, without the right to release */

static void note_release(void *arg)
{
    struct lent *lent = arg;

    test_require(!calling && !lent->fixture->inside);
    lent->releases++;
    if (lent->owner != NULL && lent->owner->conn != NULL)
        conn_write(lent->owner->conn, "again", 5);
}

static int write_ref(struct owner *owner, const void *p, size_t n, struct lent *lent)
{
    bool outer = calling;
    int rc;

    calling = true;
    rc = conn_write_ref(owner->conn, p, n, note_release, lent);
    calling = outer;
    return rc;
}

static void end_all(struct fixture *fixture, struct owner **owner)
{
    fixture_end_all(fixture);
    owner_free(owner);
    fixture_stop(fixture);
}

START_TEST(a_reference_is_sent_from_where_it_is)
{
    static const char bytes[] = "referenced";
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);
    struct lent lent = { .fixture = fixture };

    ck_assert_int_eq(write_ref(a, bytes, 10, &lent), 0);
    ck_assert_uint_eq(a->conn->unsent, 10);
    fixture_settle(fixture);
    ck_assert_str_eq(owner_sent(a), bytes);
    ck_assert_ptr_eq(a->socket->pieces[0].iov_base, bytes);
    ck_assert_uint_eq(lent.releases, 1);
    ck_assert_uint_eq(a->conn->unsent, 0);
    end_all(fixture, &a);
    ck_assert_uint_eq(lent.releases, 1);
}
END_TEST

START_TEST(it_is_released_when_its_last_byte_has_left)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);
    struct lent first = { .fixture = fixture }, second = { .fixture = fixture };

    sim_set_room(a->socket, 0);
    write_ref(a, "first", 5, &first);
    write_ref(a, "second", 6, &second);
    fixture_settle(fixture);
    for (size_t n = 1; n <= 11; n++) {
        sim_set_room(a->socket, 1);
        fixture_run(fixture);
        ck_assert_uint_eq(a->socket->sent_n, n);
        ck_assert_uint_eq(first.releases, n >= 5);
        ck_assert_uint_eq(second.releases, n >= 11);
    }
    ck_assert_str_eq(owner_sent(a), "firstsecond");
    end_all(fixture, &a);
}
END_TEST

static void do_fail(struct owner *owner)
{
    conn_fail(owner->conn, FB_ABORTED);
}

static void do_close_and_break(struct owner *owner)
{
    conn_close(owner->conn);
    fixture_settle(owner->fixture);
    sim_break_output(owner->socket, EPIPE);
}

static void do_reset(struct owner *owner)
{
    sim_break(owner->socket, ECONNRESET);
}

static void do_drain(struct owner *owner)
{
    fixture_end_all(owner->fixture);
}

static void (*const ways_to_end[])(
    struct owner *owner) = { do_fail, do_close_and_break, do_reset, do_drain };

START_TEST(it_is_released_however_the_connection_ends)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 1);
    struct owner *a = owner_open(fixture);
    struct lent part = { .fixture = fixture }, none = { .fixture = fixture };

    sim_set_room(a->socket, 2);
    write_ref(a, "first", 5, &part);
    write_ref(a, "second", 6, &none);
    fixture_settle(fixture);
    ck_assert_uint_eq(part.releases + none.releases, 0);
    calling = ways_to_end[_i / FIXTURE_EVENTS] != do_drain; /* a turn settles it */
    ways_to_end[_i / FIXTURE_EVENTS](a);
    calling = false;
    fixture_settle(fixture);
    fixture_run(fixture);
    ck_assert_uint_eq(a->closings, 1);
    ck_assert_uint_eq(part.releases, 1);
    ck_assert_uint_eq(none.releases, 1);
    fixture_logged(fixture);
    end_all(fixture, &a);
}
END_TEST

static void do_close(struct owner *owner)
{
    conn_close(owner->conn);
}

static void do_shut(struct owner *owner)
{
    conn_shutdown(owner->conn);
}

static void lack_memory(struct owner *owner)
{
    owner->fixture->memory.until_failure = 0;
}

static int empty_file(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    ck_assert_int_ne(fd, -1);
    return fd;
}

/* -1: the descriptor is still the caller's. */
START_TEST(nothing_is_taken_where_no_output_can_be)
{
    static void (*const before[])(struct owner *) = { do_close, do_shut, do_fail, lack_memory };
    struct fixture *fixture = fixture_start_net(0, 1);
    struct owner *a = owner_open(fixture);
    struct lent lent = { .fixture = fixture };
    int fd = empty_file();

    before[_i](a);
    ck_assert_int_eq(write_ref(a, "x", 1, &lent), -1);
    ck_assert_int_eq(conn_write_file(a->conn, fd, 0, 1), -1);
    fixture->memory.until_failure = UINT_MAX;
    fixture_settle(fixture);
    fixture_run(fixture);
    ck_assert_uint_eq(a->closings, before[_i] == do_close || before[_i] == do_fail);
    ck_assert_uint_eq(a->socket->sent_n, 0);
    end_all(fixture, &a);
    ck_assert_uint_eq(lent.releases, 0);
    ck_assert_int_eq(close(fd), 0);
}
END_TEST

static void write_when_closed(struct owner *owner)
{
    struct lent lent = { .fixture = owner->fixture };
    int fd = empty_file();

    ck_assert_int_eq(write_ref(owner, "x", 1, &lent), -1);
    ck_assert_int_eq(conn_write_file(owner->conn, fd, 0, 1), -1);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_uint_eq(lent.releases, 0);
}

/* A connection ended from outside gives back all references too. */
START_TEST(nothing_is_taken_by_one_that_is_told_its_end)
{
    struct fixture *fixture = fixture_start_net(0, 1);
    struct owner *a = owner_open(fixture);

    a->closed = write_when_closed;
    conn_end(a->conn, FB_ABORTED);
    fixture_settle(fixture);
    end_all(fixture, &a);
}
END_TEST

START_TEST(what_is_empty_is_released_too)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);
    struct lent lent = { .fixture = fixture };

    write_ref(a, "", 0, &lent);
    fixture_settle(fixture);
    ck_assert_uint_eq(lent.releases, 1);
    conn_write(a->conn, "a", 1);
    write_ref(a, "", 0, &lent);
    ck_assert_int_eq(conn_write_file(a->conn, empty_file(), 0, 0), 0);
    write_ref(a, "", 0, &lent);
    conn_write(a->conn, "b", 1);
    write_ref(a, "", 0, &lent);
    fixture_settle(fixture);
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(a), "ab");
    ck_assert_uint_eq(lent.releases, 4);
    end_all(fixture, &a);
}
END_TEST

START_TEST(who_is_told_may_write_on)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);
    struct lent lent = { .fixture = fixture, .owner = a };

    write_ref(a, "once ", 5, &lent);
    fixture_settle(fixture);
    ck_assert_str_eq(owner_sent(a), "once again");
    write_ref(a, "unsent", 6, &lent);
    conn_fail(a->conn, FB_ABORTED);
    fixture_settle(fixture);
    ck_assert_uint_eq(lent.releases, 2);
    end_all(fixture, &a);
}
END_TEST

/* ---- Flush ---- */

static struct lent flushed;

static size_t flush_in_the_middle(struct owner *owner, fb_bytes in)
{
    calling = true;
    write_ref(owner, "one ", 4, &flushed);
    conn_write(owner->conn, in.p, in.n);
    conn_push(owner->conn);
    calling = false;
    ck_assert_str_eq(owner_sent(owner), "one two");
    ck_assert_uint_eq(flushed.releases, 0);
    conn_write(owner->conn, " three", 6);
    ck_assert_str_eq(owner_sent(owner), "one two");
    return in.n;
}

START_TEST(a_flush_sends_at_once_and_tells_later)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);

    flushed = (struct lent) { .fixture = fixture };
    a->data = flush_in_the_middle;
    sim_says(a->socket, "two");
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(a), "one two three");
    ck_assert_uint_eq(a->socket->sends, 2);
    ck_assert_uint_eq(flushed.releases, 1);
    ck_assert_uint_eq(a->conn->sent, 13);
    end_all(fixture, &a);
}
END_TEST

static void write_and_flush(struct owner *owner)
{
    conn_write(owner->conn, "x", 1);
    conn_push(owner->conn);
}

/* Sent references count as progress, or a connection that sends all the time would seem idle. */
START_TEST(what_was_flushed_has_moved)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);

    a->expired = write_and_flush;
    for (unsigned i = 1; i <= 3; i++) {
        conn_deadline_set(a->conn, 1000);
        fixture_pass(fixture, 1000);
        ck_assert_uint_eq(a->socket->sent_n, i);
        ck_assert_uint_eq(a->conn->moved_ms, fixture->loop->clock.mono_ms);
    }
    end_all(fixture, &a);
}
END_TEST

static size_t flush_twice(struct owner *owner, fb_bytes in)
{
    write_and_flush(owner);
    write_and_flush(owner);
    ck_assert_uint_eq(owner->closings, 0);
    return in.n;
}

START_TEST(a_flush_that_fails_ends_it_from_the_loop)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);

    a->data = flush_twice;
    sim_break_output(a->socket, ECONNRESET);
    sim_says(a->socket, "?");
    fixture_run(fixture);
    ck_assert_uint_eq(a->closings, 1);
    ck_assert_int_eq(a->reason, FB_RESET);
    fixture_logged(fixture);
    end_all(fixture, &a);
}
END_TEST

START_TEST(a_flush_that_gets_no_further_goes_on_later)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);

    sim_set_room(a->socket, 3);
    owner_write_pattern(a, 10);
    conn_push(a->conn);
    ck_assert_uint_eq(a->socket->sent_n, 3);
    conn_push(a->conn);
    fixture_settle(fixture);
    sim_set_room(a->socket, SIZE_MAX);
    fixture_run(fixture);
    owner_check_pattern(a, 10);
    conn_push(a->conn); /* no bytes */
    end_all(fixture, &a);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int ends = FIXTURE_EVENTS * (int)countof(ways_to_end);

    tcase_add_loop_test(tcase, a_reference_is_sent_from_where_it_is, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, it_is_released_when_its_last_byte_has_left, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, it_is_released_however_the_connection_ends, 0, ends);
    tcase_add_loop_test(tcase, nothing_is_taken_where_no_output_can_be, 0, 4);
    tcase_add_test(tcase, nothing_is_taken_by_one_that_is_told_its_end);
    tcase_add_loop_test(tcase, what_is_empty_is_released_too, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, who_is_told_may_write_on, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_flush_sends_at_once_and_tells_later, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, what_was_flushed_has_moved, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_flush_that_fails_ends_it_from_the_loop, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_flush_that_gets_no_further_goes_on_later, 0, FIXTURE_EVENTS);
}

TEST_MAIN("conn_refs", add_tests)

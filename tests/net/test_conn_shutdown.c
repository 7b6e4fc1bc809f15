/* SPDX-License-Identifier: BSD-2-Clause */
/* Half-closed connections. */
#include "support/owner.h"

#include <errno.h>
#include <string.h>

static void settle_both(struct fixture *fixture)
{
    fixture_settle(fixture);
    fixture_run(fixture);
}

static struct owner *open_staying(struct fixture *fixture)
{
    struct owner *owner = owner_open(fixture);

    owner->eof = owner_ignore_eof;
    return owner;
}

static void end_all(struct fixture *fixture, struct owner **owner)
{
    fixture_end_all(fixture);
    owner_free(owner);
    fixture_stop(fixture);
}

START_TEST(our_half_ends_behind_its_output)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = open_staying(fixture);

    sim_set_room(a->socket, 3);
    conn_write(a->conn, "all of it", 9);
    conn_shutdown(a->conn);
    conn_write(a->conn, "nothing more", 12);
    settle_both(fixture);
    ck_assert_str_eq(owner_sent(a), "all");
    ck_assert(!a->socket->shut);
    sim_set_room(a->socket, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(a), "all of it");
    ck_assert(a->socket->shut);
    ck_assert_uint_eq(a->closings, 0);
    conn_shutdown(a->conn);
    conn_write(a->conn, "nothing more", 12);
    settle_both(fixture);
    ck_assert_str_eq(owner_sent(a), "all of it");
    end_all(fixture, &a);
}
END_TEST

START_TEST(the_peers_half_goes_on)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = open_staying(fixture);

    conn_shutdown(a->conn);
    settle_both(fixture);
    ck_assert(a->socket->shut);
    for (unsigned i = 1; i <= 3; i++) {
        sim_says(a->socket, "still here");
        fixture_run(fixture);
        ck_assert_uint_eq(a->datas, i);
        ck_assert_str_eq(a->last, "still here");
    }
    sim_end(a->socket);
    fixture_run(fixture);
    ck_assert_uint_eq(a->eofs, 1);
    ck_assert_uint_eq(a->closings, 1); /* although its owner did nothing */
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert(a->socket->closed && !a->socket->reset);
    end_all(fixture, &a);
}
END_TEST

START_TEST(the_peers_end_may_come_first)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = open_staying(fixture);

    sim_end(a->socket);
    fixture_run(fixture);
    ck_assert_uint_eq(a->eofs, 1);
    ck_assert_uint_eq(a->closings, 0);
    conn_write(a->conn, "reply", 5);
    settle_both(fixture);
    ck_assert_str_eq(owner_sent(a), "reply");
    sim_set_room(a->socket, 0);
    conn_write(a->conn, "rest", 4);
    conn_shutdown(a->conn);
    settle_both(fixture);
    ck_assert_uint_eq(a->closings, 0);
    sim_set_room(a->socket, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(a), "replyrest");
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert(a->socket->closed && !a->socket->reset);
    end_all(fixture, &a);
}
END_TEST

static void shut_half(struct owner *owner, fb_bytes rest)
{
    (void)rest;
    conn_shutdown(owner->conn);
}

START_TEST(both_ends_in_one_callback)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = owner_open(fixture);

    a->eof = shut_half;
    sim_says(a->socket, "last words");
    sim_end(a->socket);
    fixture_run(fixture);
    ck_assert_uint_eq(a->eofs, 1);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert(a->socket->closed && !a->socket->reset);
    end_all(fixture, &a);
}
END_TEST

START_TEST(the_end_behind_unsent_output_of_ours)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = open_staying(fixture);

    sim_set_room(a->socket, 0);
    conn_write(a->conn, "slow", 4);
    conn_shutdown(a->conn);
    settle_both(fixture);
    sim_end(a->socket);
    fixture_run(fixture);
    ck_assert_uint_eq(a->eofs, 1);
    ck_assert_uint_eq(a->closings, 0);
    sim_set_room(a->socket, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(a), "slow");
    ck_assert_int_eq(a->reason, FB_FINISHED);
    end_all(fixture, &a);
}
END_TEST

START_TEST(a_close_ends_what_was_shut_down)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 1);
    struct owner *a = open_staying(fixture);
    bool at_once = _i / FIXTURE_EVENTS;

    conn_write(a->conn, "reply", 5);
    conn_shutdown(a->conn);
    if (!at_once)
        settle_both(fixture);
    conn_close(a->conn);
    settle_both(fixture);
    ck_assert_str_eq(owner_sent(a), "reply");
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert(a->socket->shut && a->socket->closed && !a->socket->reset);
    end_all(fixture, &a);
}
END_TEST

START_TEST(a_close_after_it_still_lingers)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = open_staying(fixture);

    conn_shutdown(a->conn);
    conn_stop(a->conn);
    settle_both(fixture);
    sim_says(a->socket, "unread");
    fixture_run(fixture);
    conn_close(a->conn);
    settle_both(fixture);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert(!a->socket->closed);
    sim_says(a->socket, "more");
    fixture_run(fixture);
    ck_assert_uint_eq(sim_unread(a->socket), 0);
    sim_end(a->socket);
    fixture_run(fixture);
    ck_assert(a->socket->closed && !a->socket->reset);
    end_all(fixture, &a);
}
END_TEST

START_TEST(a_failure_ends_what_was_shut_down)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 1);
    struct owner *a = open_staying(fixture);

    conn_shutdown(a->conn);
    settle_both(fixture);
    if (_i / FIXTURE_EVENTS == 0)
        conn_fail(a->conn, FB_ABORTED);
    else
        sim_break(a->socket, ECONNRESET);
    settle_both(fixture);
    ck_assert_int_eq(a->reason, _i / FIXTURE_EVENTS == 0 ? FB_ABORTED : FB_RESET);
    fixture_logged(fixture);
    end_all(fixture, &a);
}
END_TEST

/* Unread input is not lost when both halves end. */
START_TEST(stopped_input_comes_before_the_end)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a = open_staying(fixture);

    conn_stop(a->conn);
    conn_shutdown(a->conn);
    settle_both(fixture);
    sim_says(a->socket, "unread");
    sim_end(a->socket);
    fixture_run(fixture);
    ck_assert_uint_eq(a->datas + a->eofs + a->closings, 0);
    conn_resume(a->conn);
    fixture_run(fixture);
    ck_assert_uint_eq(a->datas, 1);
    ck_assert_uint_eq(a->eofs, 1);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    end_all(fixture, &a);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, our_half_ends_behind_its_output, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, the_peers_half_goes_on, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, the_peers_end_may_come_first, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, both_ends_in_one_callback, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, the_end_behind_unsent_output_of_ours, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_close_ends_what_was_shut_down, 0, 2 * FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_close_after_it_still_lingers, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_failure_ends_what_was_shut_down, 0, 2 * FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, stopped_input_comes_before_the_end, 0, FIXTURE_EVENTS);
}

TEST_MAIN("conn_shutdown", add_tests)

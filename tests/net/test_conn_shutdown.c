/* SPDX-License-Identifier: BSD-2-Clause */
/* Half-closed connections. */
#include "net/bed.h"

#include <errno.h>
#include <string.h>

static void settle(struct bed *bed)
{
    net_flush(&bed->net);
    bed_run(bed);
}

static struct owner *open_staying(struct bed *bed)
{
    struct owner *owner = bed_open(bed);

    owner->eof = bed_stay;
    return owner;
}

static void end(struct bed *bed, struct owner **owner)
{
    net_fail_all(&bed->net, FB_DRAINED);
    bed_free(owner);
    bed_tear_down(bed);
}

START_TEST(our_half_ends_behind_its_output)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *a = open_staying(bed);

    fake_take(a->socket, 3);
    conn_write(a->conn, "all of it", 9);
    conn_shutdown(a->conn);
    conn_write(a->conn, "nothing more", 12);
    settle(bed);
    ck_assert_str_eq(bed_sent(a), "all");
    ck_assert(!a->socket->shut);
    fake_take(a->socket, SIZE_MAX);
    bed_run(bed);
    ck_assert_str_eq(bed_sent(a), "all of it");
    ck_assert(a->socket->shut);
    ck_assert_uint_eq(a->closings, 0);
    conn_shutdown(a->conn);
    conn_write(a->conn, "nothing more", 12);
    settle(bed);
    ck_assert_str_eq(bed_sent(a), "all of it");
    end(bed, &a);
}
END_TEST

START_TEST(the_peers_half_goes_on)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *a = open_staying(bed);

    conn_shutdown(a->conn);
    settle(bed);
    ck_assert(a->socket->shut);
    for (unsigned i = 1; i <= 3; i++) {
        fake_says(a->socket, "still here");
        bed_run(bed);
        ck_assert_uint_eq(a->datas, i);
        ck_assert_str_eq(a->last, "still here");
    }
    fake_end(a->socket);
    bed_run(bed);
    ck_assert_uint_eq(a->eofs, 1);
    ck_assert_uint_eq(a->closings, 1); /* although its owner did nothing */
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert(a->socket->closed && !a->socket->reset);
    end(bed, &a);
}
END_TEST

START_TEST(the_peers_end_may_come_first)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *a = open_staying(bed);

    fake_end(a->socket);
    bed_run(bed);
    ck_assert_uint_eq(a->eofs, 1);
    ck_assert_uint_eq(a->closings, 0);
    conn_write(a->conn, "reply", 5);
    settle(bed);
    ck_assert_str_eq(bed_sent(a), "reply");
    fake_take(a->socket, 0);
    conn_write(a->conn, "rest", 4);
    conn_shutdown(a->conn);
    settle(bed);
    ck_assert_uint_eq(a->closings, 0);
    fake_take(a->socket, SIZE_MAX);
    bed_run(bed);
    ck_assert_str_eq(bed_sent(a), "replyrest");
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert(a->socket->closed && !a->socket->reset);
    end(bed, &a);
}
END_TEST

static void shut(struct owner *owner, fb_bytes rest)
{
    (void)rest;
    conn_shutdown(owner->conn);
}

START_TEST(both_ends_in_one_callback)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *a = bed_open(bed);

    a->eof = shut;
    fake_says(a->socket, "last words");
    fake_end(a->socket);
    bed_run(bed);
    ck_assert_uint_eq(a->eofs, 1);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert(a->socket->shut);
    end(bed, &a);
}
END_TEST

START_TEST(the_end_behind_unsent_output_of_ours)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *a = open_staying(bed);

    fake_take(a->socket, 0);
    conn_write(a->conn, "slow", 4);
    conn_shutdown(a->conn);
    settle(bed);
    fake_end(a->socket);
    bed_run(bed);
    ck_assert_uint_eq(a->eofs, 1);
    ck_assert_uint_eq(a->closings, 0);
    fake_take(a->socket, SIZE_MAX);
    bed_run(bed);
    ck_assert_str_eq(bed_sent(a), "slow");
    ck_assert_int_eq(a->reason, FB_FINISHED);
    end(bed, &a);
}
END_TEST

START_TEST(a_close_ends_what_was_shut_down)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i % BED_MECHANISMS], 1);
    struct owner *a = open_staying(bed);
    bool at_once = _i / BED_MECHANISMS;

    conn_write(a->conn, "reply", 5);
    conn_shutdown(a->conn);
    if (!at_once)
        settle(bed);
    conn_close(a->conn);
    settle(bed);
    ck_assert_str_eq(bed_sent(a), "reply");
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert(a->socket->shut && a->socket->closed && !a->socket->reset);
    end(bed, &a);
}
END_TEST

START_TEST(a_close_after_it_still_lingers)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *a = open_staying(bed);

    conn_shutdown(a->conn);
    conn_stop(a->conn);
    settle(bed);
    fake_says(a->socket, "unread");
    bed_run(bed);
    conn_close(a->conn);
    settle(bed);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert(!a->socket->closed);
    fake_says(a->socket, "more");
    bed_run(bed);
    ck_assert_uint_eq(fake_unread(a->socket), 0);
    fake_end(a->socket);
    bed_run(bed);
    ck_assert(a->socket->closed && !a->socket->reset);
    end(bed, &a);
}
END_TEST

START_TEST(a_failure_ends_what_was_shut_down)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i % BED_MECHANISMS], 1);
    struct owner *a = open_staying(bed);

    conn_shutdown(a->conn);
    settle(bed);
    if (_i / BED_MECHANISMS == 0)
        conn_fail(a->conn, FB_ABORTED);
    else
        fake_break(a->socket, ECONNRESET);
    settle(bed);
    ck_assert_int_eq(a->reason, _i / BED_MECHANISMS == 0 ? FB_ABORTED : FB_RESET);
    bed_logged(bed);
    end(bed, &a);
}
END_TEST

/* What is not read yet is not lost when both halves end. */
START_TEST(stopped_input_comes_before_the_end)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct owner *a = open_staying(bed);

    conn_stop(a->conn);
    conn_shutdown(a->conn);
    settle(bed);
    fake_says(a->socket, "unread");
    fake_end(a->socket);
    bed_run(bed);
    ck_assert_uint_eq(a->datas + a->eofs + a->closings, 0);
    conn_resume(a->conn);
    bed_run(bed);
    ck_assert_uint_eq(a->datas, 1);
    ck_assert_uint_eq(a->eofs, 1);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    end(bed, &a);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, our_half_ends_behind_its_output, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, the_peers_half_goes_on, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, the_peers_end_may_come_first, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, both_ends_in_one_callback, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, the_end_behind_unsent_output_of_ours, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, a_close_ends_what_was_shut_down, 0, 2 * BED_MECHANISMS);
    tcase_add_loop_test(tcase, a_close_after_it_still_lingers, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, a_failure_ends_what_was_shut_down, 0, 2 * BED_MECHANISMS);
    tcase_add_loop_test(tcase, stopped_input_comes_before_the_end, 0, BED_MECHANISMS);
}

TEST_MAIN("conn_shutdown", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* How connections close: unsent output leaves first, and further input is discarded, so that the
 * kernel does not reset the connection under the reply. */
#include "support/owner.h"

#include <errno.h>
#include <string.h>

#define LINGERING_MS 5000

static size_t reply_and_close(struct owner *owner, fb_bytes in)
{
    conn_write(owner->conn, "reply", 5);
    conn_close(owner->conn);
    conn_write(owner->conn, "late", 4);
    conn_close(owner->conn);
    return in.n - owner->n;
}

START_TEST(without_pending_input_it_goes_at_once)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->data = reply_and_close;
    owner->n = 2; /* unconsumed bytes have been received all the same */
    sim_says(owner->socket, "request");
    fixture_turn(fixture);
    ck_assert_str_eq(owner_sent(owner), "reply");
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    ck_assert_uint_eq(owner->datas, 1);
    ck_assert(owner->socket->closed && !owner->socket->reset && !owner->socket->shut);
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

START_TEST(closing_waits_for_the_output)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->data = reply_and_close;
    sim_set_room(owner->socket, 0);
    sim_says(owner->socket, "request");
    fixture_run(fixture);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_uint_eq(owner->closings, 0);
        ck_assert_uint_eq(owner->socket->sent_n, i);
        sim_set_room(owner->socket, 1);
        fixture_run(fixture);
    }
    ck_assert_str_eq(owner_sent(owner), "reply");
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

START_TEST(closing_it_is_not_read)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);
    unsigned recvs;

    owner->data = reply_and_close;
    sim_set_room(owner->socket, 0);
    sim_says(owner->socket, "request");
    fixture_run(fixture);
    recvs = owner->socket->recvs;
    sim_says(owner->socket, "more");
    conn_resume(owner->conn);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->socket->recvs, recvs);
    sim_set_room(owner->socket, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 1);
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    ck_assert(owner->socket->shut && !owner->socket->closed); /* more bytes had arrived */
    fixture_end_all(fixture);
    ck_assert(owner->socket->closed);
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

START_TEST(closing_above_the_mark_is_not_writable)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    sim_set_room(owner->socket, 0);
    owner_write_pattern(owner, 100000);
    conn_close(owner->conn);
    fixture_settle(fixture);
    fixture_run(fixture);
    sim_set_room(owner->socket, 99999);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->writables + owner->closings, 0);
    sim_set_room(owner->socket, 1);
    fixture_run(fixture);
    owner_check_pattern(owner, 100000);
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

/* Closed for its owner, and lingering. */
static struct owner *start_lingering(struct fixture *fixture)
{
    struct owner *owner = owner_open(fixture);

    conn_deadline_set(owner->conn, 100);
    owner->data = reply_and_close;
    sim_says(owner->socket, "request");
    sim_says(owner->socket, "body");
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(owner), "reply");
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    ck_assert(owner->socket->shut && !owner->socket->closed);
    ck_assert_uint_eq(fixture_count(fixture, COUNTER_ACTIVE), 1);
    ck_assert_uint_eq(
        fixture_count(fixture, COUNTER_READING) + fixture_count(fixture, COUNTER_WRITING), 0);
    ck_assert_uint_eq(fixture->released, 0);
    return owner;
}

static void check_gone(struct fixture *fixture, struct owner **owner)
{
    ck_assert((*owner)->socket->closed && !(*owner)->socket->reset);
    ck_assert_uint_eq((*owner)->expirations, 0); /* the timer is not the owner's any more */
    ck_assert_uint_eq((*owner)->datas, 1);
    ck_assert_uint_eq(fixture->released, 1);
    owner_free(owner);
    fixture_stop(fixture);
}

START_TEST(lingering_ends_with_the_peers_end)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = start_lingering(fixture);
    static const uint8_t body[200 * 1024];

    for (int i = 0; i < 40; i++) {
        sim_say(owner->socket, body, sizeof(body));
        if (i % 2 == 0)
            fixture_pass(fixture, 100);
    }
    fixture_run(fixture);
    ck_assert_uint_eq(sim_unread(owner->socket), 0);
    ck_assert(!owner->socket->closed);
    sim_end(owner->socket);
    fixture_run(fixture);
    check_gone(fixture, &owner);
}
END_TEST

START_TEST(lingering_ends_with_its_timeout)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = start_lingering(fixture);

    for (int i = 1; i <= 10; i++) {
        ck_assert(!owner->socket->closed);
        sim_says(owner->socket, "more"); /* the stop does not defer the close */
        fixture_pass(fixture, LINGERING_MS / 10);
    }
    check_gone(fixture, &owner);
}
END_TEST

START_TEST(lingering_ends_with_a_reset)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = start_lingering(fixture);

    sim_break(owner->socket, ECONNRESET);
    fixture_run(fixture);
    ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), "recv() failed (104: "));
    check_gone(fixture, &owner);
}
END_TEST

START_TEST(lingering_cannot_be_watched)
{
    struct fixture *fixture = fixture_start_net(FIXTURE_LEVEL, 1);
    struct owner *owner = owner_open(fixture);

    owner->data = reply_and_close;
    sim_says(owner->socket, "request");
    sim_says(owner->socket, "body");
    fixture->sim->watch_error = ENOMEM;
    fixture_run(fixture);
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    fixture->sim->watch_error = 0;
    check_gone(fixture, &owner);
}
END_TEST

START_TEST(behind_the_end_nothing_can_be_pending)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);
    unsigned recvs;

    owner->eof = owner_ignore_eof;
    sim_end(owner->socket);
    fixture_run(fixture);
    recvs = owner->socket->recvs;
    conn_close(owner->conn);
    fixture_settle(fixture);
    ck_assert(owner->socket->closed);
    ck_assert_uint_eq(owner->socket->recvs, recvs);
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

/* A closing connection with output left, after the peer has taken two bytes. */
static struct owner *open_closing(struct fixture *fixture)
{
    struct owner *owner = owner_open(fixture);

    owner->data = reply_and_close;
    sim_set_room(owner->socket, 2);
    sim_says(owner->socket, "request");
    fixture_run(fixture);
    return owner;
}

START_TEST(an_abort_overtakes_the_close)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = open_closing(fixture);

    conn_fail(owner->conn, FB_ABORTED);
    fixture_settle(fixture);
    ck_assert_int_eq(owner->reason, FB_ABORTED);
    ck_assert_str_eq(owner_sent(owner), "re");
    ck_assert(owner->socket->reset);
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_peer_that_breaks_ends_the_closing)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = open_closing(fixture);

    sim_break_output(owner->socket, EPIPE);
    fixture_run(fixture);
    ck_assert_int_eq(owner->reason, FB_RESET);
    ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), "send() failed (32: "));
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, without_pending_input_it_goes_at_once, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, closing_waits_for_the_output, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, closing_it_is_not_read, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, closing_above_the_mark_is_not_writable, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, lingering_ends_with_the_peers_end, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, lingering_ends_with_its_timeout, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, lingering_ends_with_a_reset, 0, FIXTURE_EVENTS);
    tcase_add_test(tcase, lingering_cannot_be_watched);
    tcase_add_loop_test(tcase, behind_the_end_nothing_can_be_pending, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, an_abort_overtakes_the_close, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_peer_that_breaks_ends_the_closing, 0, FIXTURE_EVENTS);
}

TEST_MAIN("conn_close", add_tests)

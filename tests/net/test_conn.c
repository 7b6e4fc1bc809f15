/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a connection: from its creation to `closed`, and reasons of the end. */
#include "support/owner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

START_TEST(opened_comes_from_the_loop)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *owner = owner_create(fixture, NULL);

    ck_assert_uint_eq(owner->openings, 0);
    ck_assert_uint_eq(fixture_count(fixture, COUNTER_ACTIVE), 1);
    ck_assert_uint_eq(owner->conn->number, 1);
    fixture_run(fixture);
    ck_assert_uint_eq(owner->openings, 1);
    ck_assert_uint_eq(owner->socket->recvs, 0); /* no bytes have arrived */

    sim_says(owner->socket, "hello");
    fixture_run(fixture);
    ck_assert_uint_eq(owner->datas, 1);
    ck_assert_str_eq(owner->last, "hello");
    sim_end(owner->socket);
    fixture_run(fixture);
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    ck_assert(owner->socket->closed && !owner->socket->reset);
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

START_TEST(what_was_not_opened_is_not_closed_for_its_owner)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *early = owner_create(fixture, NULL), *opened;

    sim_says(early->socket, "hello");
    fixture_end_all(fixture);
    ck_assert(early->socket->closed);
    fixture_run(fixture);
    ck_assert_uint_eq(early->openings + early->datas + early->closings, 0);
    ck_assert_uint_eq(fixture->released, 1);

    opened = owner_open(fixture);
    fixture_end_all(fixture);
    ck_assert_int_eq(opened->reason, FB_DRAINED);
    free(early);
    owner_free(&opened);
    fixture_stop(fixture);
}
END_TEST

START_TEST(slots_end_and_come_back)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct sockaddr unnamed = { .sa_family = AF_UNIX };
    struct owner *a = owner_open(fixture), *b = owner_open(fixture), *c;

    ck_assert_ptr_null(conn_create(fixture->net, 0, &unnamed, a->conn->ops, NULL));
    ck_assert_uint_eq(fixture_count(fixture, COUNTER_ACTIVE), 2);
    ck_assert_uint_eq(fixture->released, 0);

    conn_fail(a->conn, FB_ABORTED);
    fixture_settle(fixture);
    ck_assert_uint_eq(fixture->released, 1);
    c = owner_open(fixture);
    ck_assert_uint_eq(c->conn->number, 3);
    /* the slot is a new connection's: nothing of the old connection is left */
    sim_says(c->socket, "new");
    fixture_run(fixture);
    ck_assert_str_eq(c->last, "new");
    ck_assert_uint_eq(b->datas, 0);

    fixture_end_all(fixture);
    owner_free(&a);
    owner_free(&b);
    owner_free(&c);
    fixture_stop(fixture);
}
END_TEST

static const struct {
    int error;
    fb_reason reason;
} errors[] = {
    { ECONNRESET, FB_RESET },
    { EPIPE, FB_RESET },
    { ETIMEDOUT, FB_TIMED_OUT },
    { ENOMEM, FB_NO_MEMORY },
    { ENOBUFS, FB_NO_MEMORY },
    { EHOSTUNREACH, FB_IO_ERROR },
};

/* Output that a fault of ours has discarded must not look whole to the peer. */
static bool is_fault(unsigned i)
{
    return errors[i].reason == FB_NO_MEMORY || errors[i].reason == FB_IO_ERROR;
}

static void check_failed(
    struct fixture *fixture, struct owner *owner, unsigned i, const char *call, bool reset)
{
    char expected[256];

    ck_assert_int_eq(owner->reason, errors[i].reason);
    ck_assert(owner->socket->closed && owner->socket->reset == reset);
    snprintf(expected, sizeof(expected),
        "t: [info] *%d %s failed (%d: %s), client: 192.0.2.1, server: fixture\n", 1, call,
        errors[i].error, strerror(errors[i].error));
    ck_assert_str_eq(fixture_logged(fixture), expected);
}

START_TEST(an_error_of_recv_is_the_reason)
{
    for (int m = 0; m < FIXTURE_EVENTS; m++) {
        struct fixture *fixture = fixture_start_net(m, 1);
        struct owner *owner = owner_open(fixture);

        sim_says(owner->socket, "before");
        sim_break(owner->socket, errors[_i].error);
        fixture_run(fixture);
        ck_assert_str_eq(owner->last, "before");
        check_failed(fixture, owner, (unsigned)_i, "recv()", false);
        owner_free(&owner);
        fixture_stop(fixture);
    }
}
END_TEST

START_TEST(an_error_of_send_is_the_reason)
{
    for (int m = 0; m < FIXTURE_EVENTS; m++) {
        struct fixture *fixture = fixture_start_net(m, 1);
        struct owner *owner = owner_open(fixture);

        owner->data = owner_echo;
        sim_break_output(owner->socket, errors[_i].error);
        sim_says(owner->socket, "request");
        fixture_run(fixture);
        check_failed(fixture, owner, (unsigned)_i, "send()", is_fault((unsigned)_i));
        owner_free(&owner);
        fixture_stop(fixture);
    }
}
END_TEST

START_TEST(an_error_while_output_waits_is_the_reason)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    owner->data = owner_echo;
    sim_set_room(owner->socket, 3);
    sim_says(owner->socket, "request");
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(owner), "req");
    ck_assert_uint_eq(owner->closings, 0);
    ck_assert_uint_eq(fixture_count(fixture, COUNTER_WRITING), 1);
    sim_break_output(owner->socket, EPIPE);
    fixture_run(fixture);
    check_failed(fixture, owner, 1, "send()", false);
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

START_TEST(abort_resets_and_drops_the_output)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    conn_write(owner->conn, "never", 5);
    conn_fail(owner->conn, FB_ABORTED);
    conn_write(owner->conn, "after", 5);
    ck_assert_uint_eq(owner->closings, 0); /* no call runs a callback */
    fixture_settle(fixture);
    ck_assert_int_eq(owner->reason, FB_ABORTED);
    ck_assert_str_eq(owner_sent(owner), "");
    ck_assert(owner->socket->closed && owner->socket->reset);
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

static void close_now(struct owner *owner)
{
    conn_close(owner->conn);
}

START_TEST(opened_may_end_it)
{
    static const struct owner closing = { .opened = close_now };
    static const struct owner aborting = { .opened = owner_abort };
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *a = owner_create(fixture, &closing), *b = owner_create(fixture, &aborting);

    sim_says(b->socket, "unheard");
    fixture_run(fixture);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert_int_eq(b->reason, FB_ABORTED);
    ck_assert_uint_eq(b->datas, 0);
    owner_free(&a);
    owner_free(&b);
    fixture_stop(fixture);
}
END_TEST

START_TEST(the_first_reason_counts)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_open(fixture);

    conn_fail(owner->conn, FB_INPUT_LIMIT);
    conn_fail(owner->conn, FB_ABORTED);
    conn_close(owner->conn);
    fixture_settle(fixture);
    ck_assert_int_eq(owner->reason, FB_INPUT_LIMIT);
    ck_assert(!owner->socket->reset);
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

static void write_late(struct owner *owner)
{
    conn_write(owner->conn, "late", 4);
}

START_TEST(the_owner_has_a_timer)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *owner = owner_open(fixture), *never = owner_open(fixture);

    owner->expired = write_late;
    conn_deadline_set(owner->conn, 1000);
    conn_deadline_set(never->conn, 1000);
    fixture_pass(fixture, 999);
    ck_assert_uint_eq(owner->expirations, 0);
    conn_fail(never->conn, FB_ABORTED);
    fixture_settle(fixture);
    fixture_pass(fixture, 1);
    ck_assert_uint_eq(owner->expirations, 1);
    ck_assert_str_eq(owner_sent(owner), "late"); /* settled after this callback too */
    ck_assert_uint_eq(never->expirations, 0);

    fixture_end_all(fixture);
    owner_free(&owner);
    owner_free(&never);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_refused_watch_ends_the_connection)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *owner = owner_create(fixture, NULL);

    fixture->sim->watch_error = EMFILE;
    fixture_run(fixture);
    ck_assert_int_eq(owner->reason, FB_NO_MEMORY);
    ck_assert_str_eq(fixture_logged(fixture),
        "t: [alert] *1 the connection cannot be watched (24: Too many open files), "
        "client: 192.0.2.1, server: fixture\n");
    owner_free(&owner);

    fixture->sim->watch_error = 0;
    owner = owner_open(fixture);
    fixture->sim->watch_error = ENOMEM;
    sim_set_room(owner->socket, 0);
    conn_write(owner->conn, "output that waits", 17);
    fixture_settle(fixture);
    ck_assert_int_eq(owner->reason, FB_NO_MEMORY);
    fixture->sim->watch_error = 0;
    owner_free(&owner);
    fixture_stop(fixture);
}
END_TEST

START_TEST(gauges_tell_what_connections_do)
{
    struct fixture *fixture = fixture_start_net(_i, 3);
    struct owner *reading = owner_open(fixture), *writing = owner_open(fixture),
                 *waiting = owner_open(fixture);

    ck_assert_uint_eq(fixture_count(fixture, COUNTER_ACTIVE), 3);
    ck_assert_uint_eq(
        fixture_count(fixture, COUNTER_READING) + fixture_count(fixture, COUNTER_WRITING), 0);
    reading->data = owner_leave_input;
    sim_says(reading->socket, "half a request");
    sim_set_room(writing->socket, 0);
    writing->data = owner_echo;
    sim_says(writing->socket, "request");
    fixture_run(fixture);
    ck_assert_uint_eq(fixture_count(fixture, COUNTER_READING), 1);
    ck_assert_uint_eq(fixture_count(fixture, COUNTER_WRITING), 1);

    reading->data = NULL;
    sim_says(reading->socket, "the rest");
    sim_set_room(writing->socket, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_uint_eq(
        fixture_count(fixture, COUNTER_READING) + fixture_count(fixture, COUNTER_WRITING), 0);
    ck_assert_uint_eq(fixture_count(fixture, COUNTER_ACTIVE), 3);

    fixture_end_all(fixture);
    owner_free(&reading);
    owner_free(&writing);
    owner_free(&waiting);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, opened_comes_from_the_loop, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, what_was_not_opened_is_not_closed_for_its_owner, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, slots_end_and_come_back, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, an_error_of_recv_is_the_reason, 0, (int)countof(errors));
    tcase_add_loop_test(tcase, an_error_of_send_is_the_reason, 0, (int)countof(errors));
    tcase_add_loop_test(tcase, an_error_while_output_waits_is_the_reason, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, abort_resets_and_drops_the_output, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, opened_may_end_it, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, the_first_reason_counts, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, the_owner_has_a_timer, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_refused_watch_ends_the_connection, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, gauges_tell_what_connections_do, 0, FIXTURE_EVENTS);
}

TEST_MAIN("conn", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepting under shortages, and the care for clients left behind. */
#include "support/fixture_worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FULL "t: [alert] 2 worker_connections are not enough, accepting is suspended\n"

static const struct fixture_worker_options small[] = {
    { .connections = 2 },
    { .connections = 2, .multi_accept = true },
    { .connections = 2, .processes = 2 },
    { .connections = 2, .processes = 2, .mutex = true, .multi_accept = true },
};

static void end_sessions(struct fixture *fixture)
{
    fb_close(fixture->server.record.conn);
    net_flush(fixture->net);
}

START_TEST(a_full_worker_pauses_until_a_slot_is_free)
{
    struct fixture *fixture = fixture_start_worker(&small[_i]);
    uint64_t before;

    fixture_connect_clients(fixture, 2);
    fixture_turn_until_open(fixture, 2);
    fixture_turn(fixture);
    ck_assert_str_eq(fixture_logged(fixture), ""); /* no client was turned away */

    fixture_connect_clients(fixture, 3);
    before = fixture->loop->clock.mono_ms;
    for (int i = 0; i < 10; i++) /* no spinning */
        fixture_turn(fixture);
    ck_assert_uint_eq(fixture->server.record.openings, 2);
    ck_assert_uint_ge(fixture->loop->clock.mono_ms, before + 4 * WORKER_DELAY_MS);
    ck_assert_str_eq(fixture_logged(fixture), FULL);

    for (unsigned n = 3; n <= 5; n++) {
        end_sessions(fixture);
        for (int i = 0; i < 10 && fixture->server.record.openings < n; i++)
            fixture_turn(fixture);
        ck_assert_uint_eq(fixture->server.record.openings, n);
        for (int i = 0; i < 5; i++)
            fixture_turn(fixture);
    }
    ck_assert_uint_eq(fixture->listening[0]->waiting, 0);
    ck_assert_ptr_null(strstr(fixture_logged(fixture), "[alert]")); /* once is enough */
    fixture_end_all(fixture);
    fixture_logged(fixture);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_shortage_is_said_again_after_a_while)
{
    struct fixture *fixture = fixture_start_worker(&small[0]);

    fixture_connect_clients(fixture, 3);
    fixture_turn_until_open(fixture, 2);
    fixture_turn(fixture);
    ck_assert_str_eq(fixture_logged(fixture), FULL);
    fixture_end_all(fixture);
    fixture_turn_until_open(fixture, 1);
    fixture_logged(fixture);
    sim_pass(fixture->sim, 61 * 1000);
    fixture_connect_clients(fixture, 2);
    fixture_turn_until_open(fixture, 2);
    fixture_turn(fixture);
    ck_assert_str_eq(fixture_logged(fixture), FULL);
    fixture_end_all(fixture);
    fixture_logged(fixture);
    fixture_stop(fixture);
}
END_TEST

/* Shortages of the process. */
static const int shortages[] = { EMFILE, ENFILE, ENOMEM, ENOBUFS };

START_TEST(a_shortage_pauses_for_a_while)
{
    for (size_t i = 0; i < countof(small); i++) {
        struct fixture *fixture = fixture_start_worker(&small[i]);
        char expected[256];

        fixture_connect_client(fixture);
        fixture->listening[0]->accept_error = shortages[_i];
        fixture_turn(fixture);
        snprintf(expected, sizeof(expected),
            "t: [crit] accept4() failed, accepting is suspended (%d: %s)\n", shortages[_i],
            strerror(shortages[_i]));
        ck_assert_str_eq(fixture_logged(fixture), expected);
        for (int j = 0; j < 10; j++) { /* a try takes the delay, as the clock says */
            uint64_t before = fixture->loop->clock.mono_ms;

            ck_assert(!fixture->listening[0]->listening);
            fixture_turn(fixture); /* waits */
            ck_assert_uint_eq(fixture->loop->clock.mono_ms, before + WORKER_DELAY_MS);
            fixture_turn(fixture); /* the next try */
        }
        ck_assert_str_eq(fixture_logged(fixture), ""); /* once is enough */
        fixture->listening[0]->accept_error = 0;
        fixture_turn_until_open(fixture, 1);
        fixture_end_all(fixture);
        fixture_logged(fixture);
        fixture_stop(fixture);
    }
}
END_TEST

/* Faults of the waiting client: the next client may be fine. */
static const int losses[] = { ECONNABORTED, ENETDOWN, EPROTO, EHOSTUNREACH, EPERM };

START_TEST(a_client_that_was_lost_is_no_shortage)
{
    for (size_t i = 0; i < countof(small); i += 2) { /* mechanisms that take one client a turn */
        struct fixture *fixture = fixture_start_worker(&small[i]);
        char expected[256];

        fixture->listening[0]->accept_error = losses[_i];
        fixture_turn(fixture);
        snprintf(expected, sizeof(expected), "t: [info] accept4() failed (%d: %s)\n", losses[_i],
            strerror(losses[_i]));
        ck_assert_str_eq(fixture_logged(fixture), expected);
        ck_assert(fixture->listening[0]->listening);
        fixture->listening[0]->accept_error = 0;
        fixture_connect_client(fixture);
        fixture_turn(fixture);
        ck_assert_uint_eq(fixture->server.record.openings, 1);
        fixture_stop(fixture);
    }
}
END_TEST

/* The kernel has woken this one alone. */
START_TEST(an_exclusive_waiter_that_pauses_tells_the_others)
{
    struct fixture *fixture = fixture_start_worker(&small[2]);

    ck_assert(fixture->listening[0]->exclusive);
    fixture_connect_clients(fixture, 3);
    fixture_turn_until_open(fixture, 2);
    ck_assert_uint_eq(fixture_receive_message(fixture), 0);
    fixture_turn(fixture);
    ck_assert_uint_eq(fixture_receive_message(fixture), MESSAGE_RESCAN);
    ck_assert_uint_eq(fixture_receive_message(fixture), 0);
    fixture_end_all(fixture);
    fixture_logged(fixture);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_look_takes_all_who_wait)
{
    static const struct fixture_worker_options options = { .connections = 16, .processes = 2 };
    struct fixture *fixture = fixture_start_worker(&options);

    accept_rescan(fixture->worker); /* no client waits */
    fixture_turn(fixture);
    ck_assert_uint_eq(fixture->server.record.openings, 0);
    fixture_connect_clients(fixture, 5);
    accept_rescan(fixture->worker);
    fixture_turn(fixture);
    ck_assert_uint_eq(fixture->server.record.openings, 5);
    fixture_connect_clients(fixture, 2); /* after it, one a turn again */
    fixture_turn(fixture);
    ck_assert_uint_eq(fixture->server.record.openings, 6);
    fixture_turn(fixture);
    fixture_stop(fixture);
}
END_TEST

START_TEST(before_it_is_told_it_accepts_nothing)
{
    static const struct fixture_worker_options options = {
        .connections = 16, .processes = 2, .mutex = true
    };
    struct fixture *fixture = fixture_prepare_worker(&options);

    fixture_connect_client(fixture);
    accept_rescan(fixture->worker);
    for (int i = 0; i < 3; i++)
        fixture_turn(fixture);
    ck_assert_uint_eq(fixture->server.record.openings, 0);
    ck_assert(!fixture->listening[0]->listening);
    accept_open(fixture->worker);
    fixture_turn_until_open(fixture, 1);
    fixture_stop(fixture);
}
END_TEST

/* A client of a deferred listener has sent bytes: they are read in the turn of the accept. A silent
 * client is watched like any client. */
START_TEST(deferred_clients_are_read_at_once)
{
    struct fixture_worker_options options = { .events = _i / 2, .connections = 4 };
    struct fixture *fixture = fixture_start_worker(&options);
    struct scripted_record *record = &fixture->server.record;
    bool deferred = _i % 2 != 0;
    struct sim_socket *client;

    fixture->listener->options.deferred = deferred;
    client = fixture_connect_client(fixture);
    sim_says(client, "early");
    fixture_turn(fixture);
    ck_assert_uint_eq(record->openings, 1);
    ck_assert_uint_eq(record->datas, deferred);
    fixture_turn(fixture);
    ck_assert_str_eq(record->last, "early");

    client = fixture_connect_client(fixture);
    fixture_turn_until_open(fixture, 2);
    ck_assert_uint_eq(record->datas, 1);
    sim_says(client, "late");
    fixture_turn(fixture);
    ck_assert_str_eq(record->last, "late");
    fixture_end_all(fixture);
    fixture_logged(fixture);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, deferred_clients_are_read_at_once, 0, 2 * FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_full_worker_pauses_until_a_slot_is_free, 0, (int)countof(small));
    tcase_add_test(tcase, a_shortage_is_said_again_after_a_while);
    tcase_add_loop_test(tcase, a_shortage_pauses_for_a_while, 0, (int)countof(shortages));
    tcase_add_loop_test(tcase, a_client_that_was_lost_is_no_shortage, 0, (int)countof(losses));
    tcase_add_test(tcase, an_exclusive_waiter_that_pauses_tells_the_others);
    tcase_add_test(tcase, a_look_takes_all_who_wait);
    tcase_add_test(tcase, before_it_is_told_it_accepts_nothing);
}

TEST_MAIN("accept", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The turn of the loop, and the accept mutex. */
#include "support/fixture_worker.h"

#include <string.h>

static const struct fixture_worker_options one_of_two = {
    .events = FIXTURE_LEVEL, /* a mechanism that wakes all watchers of a listener */
    .connections = 16,
    .processes = 2,
    .mutex = true,
};
static const struct fixture_worker_options single = { .connections = 16 };

struct clerk {
    struct fixture *fixture;
    struct timer timer;
};

/* Connections have been accepted by now, and not opened; the mutex is free again. */
static void clerk_expired(struct loop *loop, struct timer *timer)
{
    struct fixture *fixture = container_of(timer, struct clerk, timer)->fixture;

    (void)loop;
    ck_assert_uint_eq(fixture->listening[0]->waiting, 0);
    ck_assert_uint_eq(fixture->server.record.openings, 0);
    ck_assert(!fixture_holds_mutex(fixture));
    fixture_note(fixture, 't');
}

START_TEST(a_turn_has_its_order)
{
    struct fixture *fixture = fixture_start_worker(&one_of_two);
    struct clerk clerk = { .fixture = fixture, .timer.expired = clerk_expired };

    timer_set(fixture->loop, &clerk.timer, 1);
    sim_pass(fixture->sim, 1);
    fixture_connect_client(fixture);
    fixture_turn(fixture);
    ck_assert_str_eq(fixture->order, "wto");
    ck_assert_uint_eq(shared_slot(fixture->shared, fixture->slot)->counters.n[COUNTER_ACCEPTS], 1);
    fixture_turn(fixture);
    ck_assert_str_eq(fixture->order, "w");
    fixture_stop(fixture);
}
END_TEST

static void check_watching(struct loop *loop, int timeout)
{
    struct fixture *fixture = (struct fixture *)worker_of_loop(loop);

    (void)timeout;
    ck_assert(fixture_mutex_is_of(fixture, fixture->heritage.slot));
    ck_assert(fixture->listening[0]->listening && !fixture->listening[0]->exclusive);
    fixture_note(fixture, 'w');
}

START_TEST(the_holder_watches_and_gives_the_lock_back)
{
    struct fixture *fixture = fixture_start_worker(&one_of_two);

    ck_assert(!fixture->listening[0]->listening);
    fixture->sim->on_wait = check_watching;
    for (int i = 0; i < 3; i++) {
        fixture_turn(fixture);
        ck_assert_str_eq(fixture->order, "w");
        ck_assert(!fixture_holds_mutex(fixture));
    }
    fixture_stop(fixture);
}
END_TEST

static void check_not_watching(struct loop *loop, int timeout)
{
    struct fixture *fixture = (struct fixture *)worker_of_loop(loop);

    ck_assert(!fixture->listening[0]->listening);
    ck_assert_int_ge(timeout, 0);
    ck_assert_int_le(timeout, WORKER_DELAY_MS);
    fixture_note(fixture, 'n');
}

START_TEST(who_does_not_hold_it_does_not_watch)
{
    struct fixture *fixture = fixture_start_worker(&one_of_two);
    struct slot_id rival = fixture_take_slot(fixture);

    fixture_take_mutex(fixture, rival);
    fixture->sim->on_wait = check_not_watching;
    fixture_connect_client(fixture);
    for (int i = 0; i < 3; i++) {
        fixture_turn(fixture);
        ck_assert_str_eq(fixture->order, "n");
        ck_assert_int_eq(fixture->sim->timeout, WORKER_DELAY_MS);
        fixture_release_mutex(fixture, rival);
        fixture_take_mutex(fixture, rival); /* in its next turn */
    }
    fixture_release_mutex(fixture, rival);
    fixture->sim->on_wait = check_watching;
    fixture_turn(fixture);
    ck_assert_uint_eq(fixture->server.record.openings, 1);

    /* once more: the worker watched in the last turn */
    fixture_take_mutex(fixture, rival);
    fixture->sim->on_wait = check_not_watching;
    fixture_turn(fixture);
    ck_assert_str_eq(fixture->order, "n");
    fixture_release_mutex(fixture, rival);
    fixture_stop(fixture);
}
END_TEST

static void nothing(struct loop *loop, struct timer *timer)
{
    (void)loop;
    (void)timer;
}

START_TEST(the_wait_is_as_long_as_the_nearest_of_all)
{
    struct fixture *fixture = fixture_start_worker(&one_of_two);
    struct loop *loop = fixture->loop;
    struct slot_id rival = fixture_take_slot(fixture);
    struct timer near = { .expired = nothing }, far = { .expired = nothing };

    fixture_turn(fixture);
    ck_assert_int_eq(fixture->sim->timeout, -1); /* the worker holds the mutex */
    timer_set(loop, &far, 10000);
    fixture_turn(fixture);
    ck_assert_int_eq(fixture->sim->timeout, 10000);

    fixture_take_mutex(fixture, rival);
    timer_set(loop, &far, 10000);
    timer_set(loop, &near, 100);
    fixture_turn(fixture);
    ck_assert_int_eq(fixture->sim->timeout, 100);
    fixture_turn(fixture);
    ck_assert_int_eq(fixture->sim->timeout, WORKER_DELAY_MS);
    timer_del(loop, &far);
    fixture_release_mutex(fixture, rival);
    fixture_stop(fixture);
}
END_TEST

START_TEST(what_waits_for_this_turn_is_not_kept_waiting)
{
    struct fixture *fixture = fixture_start_worker(&single);
    struct sim_socket *client = fixture_connect_client(fixture);

    fixture_turn(fixture);
    sim_says(client, "hello");
    fb_stop(fixture->server.record.conn);
    fixture_turn(fixture);
    ck_assert_uint_eq(client->sent_n, 0);
    fb_resume(fixture->server.record.conn);
    fixture_turn(fixture);
    ck_assert_int_eq(fixture->sim->timeout, 0); /* resuming posts to the next turn */
    ck_assert_uint_eq(client->sent_n, 5);
    fixture_turn(fixture);
    ck_assert_int_eq(fixture->sim->timeout, -1);
    fixture_stop(fixture);
}
END_TEST

START_TEST(alone_it_needs_no_mutex)
{
    static const struct fixture_worker_options alone[] = {
        { .connections = 16, .processes = 1, .mutex = true },
        { .connections = 16, .mutex = true },
        { .connections = 16, .processes = 1 },
    };

    for (size_t i = 0; i < countof(alone); i++) {
        struct fixture *fixture = fixture_start_worker(&alone[i]);
        struct slot_id rival = fixture_take_slot(fixture);

        fixture_take_mutex(fixture, rival);
        ck_assert(fixture->listening[0]->listening && !fixture->listening[0]->exclusive);
        fixture_connect_client(fixture);
        fixture_turn(fixture);
        ck_assert_int_eq(fixture->sim->timeout, -1);
        ck_assert_uint_eq(fixture->server.record.openings, 1);
        fixture_release_mutex(fixture, rival);
        fixture_stop(fixture);
    }
}
END_TEST

/* The accept mutex is given back soon, and work without need of the mutex follows the events of
 * earlier clients. */
START_TEST(who_leaves_makes_room_for_who_comes_in_the_same_turn)
{
    struct fixture *fixture = fixture_start_worker(&single);
    struct sim_socket *first = fixture_connect_client(fixture);

    fixture_turn(fixture);
    ck_assert_str_eq(fixture->order, "wo");
    fixture_connect_client(fixture);
    sim_end(first);
    fixture_turn(fixture);
    ck_assert_str_eq(fixture->order, "wco");
    fixture_logged_all(fixture);
    fixture_stop(fixture);
}
END_TEST

/* The mutex is for mechanisms that wake all watchers of a listener. */
START_TEST(listeners_are_exclusive_where_they_can_be)
{
    const struct fixture_worker_options edge = {
        .connections = 16,
        .processes = 2,
        .mutex = _i,
    };
    const struct fixture_worker_options level = {
        .events = FIXTURE_LEVEL,
        .connections = 16,
        .processes = 2,
    };
    struct fixture *fixture = fixture_start_worker(&edge);

    ck_assert(fixture->listening[0]->listening && fixture->listening[0]->exclusive);
    fixture_turn(fixture);
    ck_assert(fixture->listening[0]->listening);
    ck_assert_int_eq(fixture->sim->timeout, -1);
    ck_assert(!fixture_holds_mutex(fixture));
    fixture_stop(fixture);

    fixture = fixture_start_worker(&level);
    ck_assert(fixture->listening[0]->listening && !fixture->listening[0]->exclusive);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_reuseport_socket_is_one_workers)
{
    const struct fixture_worker_options second = {
        .connections = 16,
        .processes = 2,
        .index = 1,
        .mutex = true,
        .reuseport = 4,
    };
    struct fixture *fixture = fixture_start_worker(&second);
    struct slot_id rival = fixture_take_slot(fixture);

    /* two more than there are workers now are shared out */
    fixture_take_mutex(fixture, rival); /* held by a rival */
    fixture_turn(fixture);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(fixture->listening[i]->listening, i % 2 == 1);
        ck_assert(!fixture->listening[i]->exclusive);
        sim_client(fixture->listening[i]);
    }
    fixture_turn_until_open(fixture, 2);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(fixture->listening[i]->waiting, 1 - i % 2);
    fixture_release_mutex(fixture, rival);
    fixture_stop(fixture);
}
END_TEST

START_TEST(it_takes_one_or_all)
{
    struct fixture_worker_options options = one_of_two;
    struct fixture *fixture;

    for (int many = 0; many < 2; many++) {
        options.multi_accept = many;
        fixture = fixture_start_worker(&options);
        fixture_connect_clients(fixture, 5);
        fixture_turn(fixture);
        ck_assert_str_eq(fixture->order, many ? "wooooo" : "wo");
        fixture_turn(fixture);
        ck_assert_str_eq(fixture->order, many ? "w" : "wo");
        fixture_turn_until_open(fixture, 5);
        fixture_stop(fixture);
    }
}
END_TEST

/* Waiting clients have a turn after the other events. */
START_TEST(a_flood_leaves_time_for_others)
{
    struct fixture_worker_options options = {
        .connections = 200, .processes = 2, .mutex = true, .multi_accept = true
    };
    struct fixture *fixture = fixture_start_worker(&options);

    fixture_connect_clients(fixture, 150);
    for (unsigned n = 64; n <= 128; n += 64) {
        fixture_turn(fixture);
        ck_assert_uint_eq(fixture->server.record.openings, n);
        ck_assert_uint_eq(fixture->listening[0]->waiting, 150 - n);
    }
    fixture_turn_until_open(fixture, 150);
    fixture_stop(fixture);
}
END_TEST

/* accept_disabled = connections / 8 - free */
START_TEST(who_has_more_than_its_share_leaves_it_to_others)
{
    struct fixture *fixture = fixture_start_worker(&one_of_two);
    int64_t disabled;

    for (unsigned n = 1; n <= 14; n++) {
        fixture_connect_client(fixture);
        fixture_turn(fixture);
        ck_assert_uint_eq(fixture->server.record.openings, n);
        ck_assert_int_eq(fixture->worker->accept.disabled, 16 / 8 - (16 - (int)n));
    }
    fixture_connect_clients(fixture, 2);
    fixture_turn(fixture);
    ck_assert_uint_eq(fixture->server.record.openings, 15);
    ck_assert_int_eq(fixture->worker->accept.disabled, 1);

    fixture->sim->on_wait = check_not_watching; /* although nobody holds the lock */
    fixture_turn(fixture);
    ck_assert_uint_eq(fixture->server.record.openings, 15);
    ck_assert_int_eq(fixture->worker->accept.disabled, 0);
    fixture->sim->on_wait = check_watching;
    fixture_turn(fixture);
    ck_assert_uint_eq(fixture->server.record.openings, 16);
    disabled = fixture->worker->accept.disabled;
    ck_assert_int_eq(disabled, 2);
    fixture->sim->on_wait = check_not_watching;
    fixture_turn(fixture);
    fixture_turn(fixture);
    ck_assert_int_eq(fixture->worker->accept.disabled, 0);
    fixture_stop(fixture);
}
END_TEST

/* Adds a second worker, taking clients and without a client. */
static void add_rival(struct fixture *fixture)
{
    struct slot_id rival = fixture_take_slot(fixture);

    slot_set_place(fixture->shared, rival, slot_place(0, 1));
    shared_slot(fixture->shared, rival)->load.takes = SLOT_TAKES;
}

/* An isolated client wakes nobody else; of two simultaneous clients the second is left to a worker
 * without clients, and taken soon if not accepted. */
START_TEST(a_burst_is_left_to_who_has_fewer)
{
    const struct fixture_worker_options options = {
        .connections = 16,
        .processes = 2,
        .mutex = true,
        .bells = true,
        .share = true,
    };
    struct fixture *fixture = fixture_start_worker(&options);
    const struct counters *counters = &shared_slot(fixture->shared, fixture->slot)->counters;

    add_rival(fixture);
    fixture_connect_clients(fixture, 1 + (unsigned)_i);
    fixture_turn(fixture);
    ck_assert_uint_eq(fixture->server.record.openings, 1);
    ck_assert(fixture->listening[0]->listening);
    ck_assert_uint_eq(counters->n[COUNTER_PASSES], 0);
    if (_i == 1) {
        fixture_turn(fixture);
        ck_assert_uint_eq(fixture->server.record.openings, 1);
        ck_assert(!fixture->listening[0]->listening);
        ck_assert_uint_eq(counters->n[COUNTER_PASSES], 1);
        fixture_turn_until_open(fixture, 2);
    }
    fixture_stop(fixture);
}
END_TEST

/* Without the mutex: the listener is left, and a second worker woken. */
START_TEST(who_has_few_free_slots_wakes_another)
{
    const struct fixture_worker_options options = {
        .connections = 16,
        .processes = 2,
        .mutex = _i == 0, /* accept_disabled is for who asks for turns */
        .bells = true,
    };
    struct fixture *fixture = fixture_start_worker(&options);
    const struct slot *own = shared_slot(fixture->shared, fixture->slot);

    add_rival(fixture);
    for (unsigned n = 1; n <= 14; n++) {
        fixture_connect_client(fixture);
        fixture_turn(fixture);
        ck_assert_uint_eq(fixture->server.record.openings, n);
    }
    ck_assert(fixture->listening[0]->listening);
    ck_assert_uint_eq(own->counters.n[COUNTER_PASSES], 0);
    fixture_connect_clients(fixture, 2);
    fixture_turn(fixture);
    ck_assert_uint_eq(fixture->server.record.openings, 15);
    ck_assert_int_eq(fixture->listening[0]->listening, _i == 1);
    ck_assert_uint_eq(own->counters.n[COUNTER_PASSES], _i == 0);
    fixture_turn_until_open(fixture, 16); /* no other worker has taken the client */
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_turn_has_its_order);
    tcase_add_test(tcase, the_holder_watches_and_gives_the_lock_back);
    tcase_add_test(tcase, who_does_not_hold_it_does_not_watch);
    tcase_add_test(tcase, the_wait_is_as_long_as_the_nearest_of_all);
    tcase_add_test(tcase, what_waits_for_this_turn_is_not_kept_waiting);
    tcase_add_test(tcase, who_leaves_makes_room_for_who_comes_in_the_same_turn);
    tcase_add_test(tcase, alone_it_needs_no_mutex);
    tcase_add_loop_test(tcase, listeners_are_exclusive_where_they_can_be, 0, 2);
    tcase_add_test(tcase, a_reuseport_socket_is_one_workers);
    tcase_add_test(tcase, it_takes_one_or_all);
    tcase_add_test(tcase, a_flood_leaves_time_for_others);
    tcase_add_test(tcase, who_has_more_than_its_share_leaves_it_to_others);
    tcase_add_loop_test(tcase, a_burst_is_left_to_who_has_fewer, 0, 2);
    tcase_add_loop_test(tcase, who_has_few_free_slots_wakes_another, 0, 2);
}

TEST_MAIN("turn", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The accept mutex heals: from stopped holders, and from impossible owners. */
#include "support/fixture_worker.h"

#define BOUND_MS 1000 /* twice WORKER_DELAY_MS */

static const struct fixture_worker_options one_of_two = {
    .events = FIXTURE_LEVEL, /* a mechanism that wakes all watchers of a listener */
    .connections = 16,
    .processes = 2,
    .mutex = true,
};
static const struct fixture_worker_options many = {
    .events = FIXTURE_LEVEL,
    .connections = 16,
    .processes = 2,
    .mutex = true,
    .multi_accept = true,
};

/* Turns until the worker watches the listener, for more than one turn; returns the time spent. */
static uint64_t turn_until_watching(struct fixture *fixture)
{
    uint64_t from = fixture->loop->clock.mono_ms;

    fixture_turn(fixture);
    for (int turns = 0; !fixture->listening[0]->listening; turns++) {
        ck_assert_int_lt(turns, 1000);
        fixture_turn(fixture);
    }
    return fixture->loop->clock.mono_ms - from;
}

static void forge_owner(struct fixture *fixture, uint64_t word)
{
    atomic_store(&fixture_mutex(fixture)->word, word);
}

START_TEST(a_holder_that_stands_still_loses_it)
{
    struct fixture *fixture = fixture_start_worker(&one_of_two);
    struct slot_id rival = fixture_take_slot(fixture);
    uint64_t passed;

    for (int i = 0; i < 3; i++) { /* again and again, but not worth a line */
        fixture_take_mutex(fixture, rival);
        fixture_connect_client(fixture);
        passed = turn_until_watching(fixture);
        ck_assert_uint_le(passed, BOUND_MS);
        ck_assert_uint_gt(passed, BOUND_MS - WORKER_DELAY_MS);
        fixture_turn_until_open(fixture, (unsigned)i + 1);
        fixture_release_mutex(fixture, rival); /* by then another's */
    }
    ck_assert_uint_eq(fixture_receive_message(fixture), 0);
    ck_assert_str_eq(fixture_logged(fixture), "");
    fixture_stop(fixture);
}
END_TEST

/* A holder waiting for events stands still, too: it keeps the mutex until a client waits, and
 * waiters look for a client at most once in accept_mutex_delay. */
START_TEST(a_holder_that_waits_keeps_it)
{
    struct fixture *fixture = fixture_start_worker(&one_of_two);
    struct slot_id rival = fixture_take_slot(fixture);

    fixture_take_mutex(fixture, rival);
    for (int i = 0; i < 20; i++) {
        fixture_turn(fixture);
        ck_assert_int_eq(fixture->sim->timeout, WORKER_DELAY_MS);
        ck_assert(!fixture->listening[0]->listening);
    }
    ck_assert(fixture_mutex_is_of(fixture, rival));
    fixture_connect_client(fixture);
    fixture_turn_until_open(fixture, 1);
    fixture_stop(fixture);
}
END_TEST

/* A rung worker, too late for a free mutex, takes the mutex from the ringing worker. */
START_TEST(who_was_rung_takes_it_without_a_client)
{
    struct fixture_worker_options options = one_of_two;
    struct fixture *fixture;
    struct slot_id rival;

    options.bells = true;
    fixture = fixture_start_worker(&options);
    rival = fixture_take_slot(fixture);
    fixture_take_mutex(fixture, rival);
    for (int i = 0; i < 10; i++)
        fixture_turn(fixture);
    ck_assert(!fixture->listening[0]->listening);
    loop_post(fixture->loop, &fixture->worker->accept.bell->events[EVENT_READ], QUEUE_ACCEPT);
    fixture_turn(fixture);
    fixture_turn(fixture);
    ck_assert(fixture->listening[0]->listening);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_holder_that_turns_keeps_it)
{
    struct fixture *fixture = fixture_start_worker(&one_of_two);
    struct slot_id rival = fixture_take_slot(fixture);

    fixture_take_mutex(fixture, rival);
    for (int i = 0; i < 4; i++) {
        fixture_turn(fixture);
        ck_assert_int_eq(fixture->sim->timeout, WORKER_DELAY_MS);
        ck_assert(!fixture->listening[0]->listening);
        ck_assert(fixture_mutex_is_of(fixture, rival));
        fixture_release_mutex(fixture, rival);
        fixture_take_mutex(fixture, rival);
    }
    fixture_release_mutex(fixture, rival);
    fixture_stop(fixture);
}
END_TEST

/* A worker with many connections leaves a free mutex to others, but for no longer. */
START_TEST(who_leaves_it_to_others_waits_no_longer)
{
    struct fixture *fixture = fixture_start_worker(&one_of_two);
    struct slot_id rival = fixture_take_slot(fixture);
    uint64_t passed;

    fixture_connect_client(fixture);
    fixture_turn_until_open(fixture, 1);
    fixture->worker->accept.disabled = 1000;
    fixture_connect_client(fixture);
    if (_i == 0) /* without it, nobody else is there */
        fixture_take_mutex(fixture, rival);
    passed = turn_until_watching(fixture);
    ck_assert_uint_gt(passed, BOUND_MS - WORKER_DELAY_MS);
    ck_assert_uint_le(passed, BOUND_MS);
    fixture_turn_until_open(fixture, 2);
    fixture_stop(fixture);
}
END_TEST

static struct slot_id taker;

/* While the worker waits as the holder, a second worker takes the mutex, and a client comes. */
static void take_over(struct loop *loop, int timeout)
{
    struct fixture *fixture = (struct fixture *)worker_of_loop(loop);

    (void)timeout;
    ck_assert(fixture->listening[0]->listening);
    ck_assert(fixture_mutex_is_of(fixture, fixture->slot));
    forge_owner(fixture, shm_lock_word(taker, 7));
    fixture_connect_clients(fixture, 2);
    fixture->sim->on_wait = NULL;
}

START_TEST(a_former_holder_steps_back)
{
    static const struct fixture_worker_options *const options[] = { &one_of_two, &many };
    struct fixture *fixture = fixture_start_worker(options[_i]);

    taker = fixture_take_slot(fixture);
    fixture->sim->on_wait = take_over;
    fixture_turn(fixture);
    ck_assert_uint_eq(fixture->listening[0]->waiting, 2);
    ck_assert(!fixture->listening[0]->listening);
    ck_assert_uint_eq(shm_lock_owner(fixture_mutex(fixture)), shm_lock_word(taker, 7));
    forge_owner(fixture, 0); /* the other has turned */
    fixture_turn_until_open(fixture, 2);
    ck_assert_uint_eq(fixture_receive_message(fixture), 0);
    fixture_stop(fixture);
}
END_TEST

/* While the worker waits as the holder, an attacker frees the mutex: it has no holder. */
static void free_it(struct loop *loop, int timeout)
{
    struct fixture *fixture = (struct fixture *)worker_of_loop(loop);

    (void)timeout;
    forge_owner(fixture, 0);
}

START_TEST(a_mutex_that_was_freed_is_not_lost)
{
    struct fixture *fixture = fixture_start_worker(&one_of_two);

    fixture->sim->on_wait = free_it;
    fixture_connect_clients(fixture, 3);
    for (unsigned n = 1; n <= 3; n++) {
        fixture_turn(fixture);
        ck_assert_uint_eq(fixture->server.record.openings, n);
    }
    fixture->sim->on_wait = NULL;
    fixture_stop(fixture);
}
END_TEST

/* Impossible owners, as a worker in an attacker's hands may write them. */
static uint64_t impossible_owner(struct fixture *fixture, int i)
{
    struct slot_id rival = fixture_take_slot(fixture);

    switch (i) {
    case 0:
        return UINT64_MAX;
    case 1:
        return 1; /* no serial */
    case 2:
        rival.serial++;
        break;
    case 3:
        rival.slot++; /* not used yet */
        break;
    case 4:
        rival.slot += SLOT_MAX; /* the other half's */
        break;
    default: /* a dead worker's, written after its death */
        slot_release(fixture->shared, rival);
        break;
    }
    return shm_lock_word(rival, 1);
}

START_TEST(a_made_up_owner_is_damage)
{
    struct fixture *fixture = fixture_start_worker(&one_of_two);
    uint64_t owner = impossible_owner(fixture, _i);

    forge_owner(fixture, owner);
    fixture_connect_client(fixture);
    ck_assert_uint_le(turn_until_watching(fixture), BOUND_MS);
    fixture_turn_until_open(fixture, 1);
    ck_assert_uint_eq(fixture_receive_message(fixture), MESSAGE_MUTEX_DAMAGED);
    ck_assert_uint_eq(fixture_receive_message(fixture), 0);
    ck_assert(!fixture_holds_mutex(fixture));
    fixture_stop(fixture);
}
END_TEST

/* Our own name needs no bound. Reports do. */
START_TEST(our_own_name_is_damage)
{
    struct fixture *fixture = fixture_start_worker(&many);
    unsigned reports = 0;

    for (uint32_t turn = 0; turn < 20; turn++) {
        forge_owner(fixture, shm_lock_word(fixture->slot, turn)); /* the very next turn, too */
        fixture_connect_client(fixture);
        fixture_turn(fixture);
        ck_assert_uint_eq(fixture->server.record.openings, turn + 1);
        fb_close(fixture->server.record.conn);
        net_flush(fixture->net);
        sim_pass(fixture->sim, BOUND_MS / 4);
    }
    fixture_turn(fixture);
    while (fixture_receive_message(fixture) == MESSAGE_MUTEX_DAMAGED)
        reports++;
    ck_assert_uint_ge(reports, 4);
    ck_assert_uint_le(reports, 6);
    fixture_logged(fixture);
    fixture_stop(fixture);
}
END_TEST

static void tell_to_leave(struct fixture *fixture)
{
    struct channel_message message = { .kind = MESSAGE_MUTEX_OFF, .fd = -1 };

    ck_assert_int_eq(channel_send(fixture->master, &message), 0);
}

START_TEST(it_goes_on_without)
{
    struct fixture *fixture = fixture_start_worker(&one_of_two);
    struct slot_id rival = fixture_take_slot(fixture);

    if (_i == 0)
        fixture_turn(fixture); /* watches as its holder */
    fixture_take_mutex(fixture, rival);
    tell_to_leave(fixture);
    acceptors_leave_mutex(fixture->worker);
    acceptors_leave_mutex(fixture->worker); /* told twice */
    ck_assert(fixture->listening[0]->listening);
    fixture_connect_client(fixture);
    fixture_turn(fixture);
    ck_assert_uint_eq(fixture->server.record.openings, 1);
    fixture_turn(fixture);
    ck_assert_int_eq(fixture->sim->timeout, -1);
    ck_assert(fixture_mutex_is_of(fixture, rival));
    fixture_release_mutex(fixture, rival);
    fixture_stop(fixture);
}
END_TEST

START_TEST(it_is_told_before_it_accepts)
{
    struct fixture *fixture = fixture_prepare_worker(&one_of_two);

    acceptors_leave_mutex(fixture->worker);
    ck_assert(!fixture->listening[0]->listening);
    accept_open(fixture->worker);
    ck_assert(fixture->listening[0]->listening);
    fixture_stop(fixture);
}
END_TEST

static const struct {
    uint64_t delay, bound;
} bounds[] = { { 1, 2 }, { 20, 40 }, { 499, 998 }, { 500, 1000 }, { 501, 1000 },
    { 3600000, 1000 } };

START_TEST(the_bound_is_twice_the_delay_and_a_second_at_most)
{
    struct shared *shared = shared_create(false);
    struct accept_mutex mutex;
    struct slot_id id, rival;
    uint64_t now = 5000;

    ck_assert(slot_acquire(shared, &id) && slot_acquire(shared, &rival));
    accept_mutex_init(&mutex, shared, id, bounds[_i].delay, false);
    ck_assert(shm_lock_take(mutex.lock, 0, shm_lock_word(rival, 1)));
    ck_assert_int_eq(accept_mutex_try(&mutex, now, false), ACCEPT_MUTEX_BUSY);
    ck_assert_uint_eq(accept_mutex_wait(&mutex, now), bounds[_i].bound);
    now += bounds[_i].bound - 1;
    ck_assert_int_eq(accept_mutex_try(&mutex, now, false), ACCEPT_MUTEX_BUSY);
    ck_assert_uint_eq(accept_mutex_wait(&mutex, now), 1);
    ck_assert_int_eq(accept_mutex_try(&mutex, now + 1, false), ACCEPT_MUTEX_DUE);
    ck_assert_int_eq(accept_mutex_rob(&mutex, now + 1), ACCEPT_MUTEX_ACQUIRED);
    ck_assert(!accept_mutex_is_lost(&mutex));
    accept_mutex_release(&mutex, now + 1);
    ck_assert_uint_eq(shm_lock_owner(mutex.lock), 0);
    shared_destroy(&shared);
}
END_TEST

#define STEP_MS 50

/* Two workers with shared memory; the first takes part. */
struct pair {
    struct shared *shared;
    struct accept_mutex mutex;
    struct slot_id rival;
    uint64_t now;
};

static struct pair make_pair(void)
{
    struct pair pair = { .shared = shared_create(false), .now = 5000 };
    struct slot_id id;

    ck_assert(slot_acquire(pair.shared, &id) && slot_acquire(pair.shared, &pair.rival));
    accept_mutex_init(&pair.mutex, pair.shared, id, WORKER_DELAY_MS, false);
    return pair;
}

/* Tries until the mutex is ours, while clients wait and the rival writes a new turn before every
 * try; returns the time spent. */
static uint64_t try_against_rival(struct pair *pair, enum accept_mutex_status *status)
{
    uint64_t from = pair->now;

    for (uint32_t turn = 1;; turn++) {
        atomic_store(&pair->mutex.lock->word, shm_lock_word(pair->rival, turn));
        *status = accept_mutex_try(&pair->mutex, pair->now, false);
        if (*status == ACCEPT_MUTEX_DUE)
            *status = accept_mutex_rob(&pair->mutex, pair->now);
        if (*status != ACCEPT_MUTEX_BUSY)
            return pair->now - from;
        ck_assert_uint_lt(turn, 1000);
        pair->now += STEP_MS;
    }
}

/* Whether the worker really turns so often, or only writes so. */
START_TEST(nobody_is_the_only_holder_for_long)
{
    struct pair pair = make_pair();
    enum accept_mutex_status status;

    for (int i = 0; i < 3; i++) {
        uint64_t passed = try_against_rival(&pair, &status);

        ck_assert_int_eq(status, ACCEPT_MUTEX_ACQUIRED);
        ck_assert_uint_gt(passed, BOUND_MS);
        ck_assert_uint_le(passed, 2 * BOUND_MS);
        accept_mutex_release(&pair.mutex, pair.now);
    }
    shared_destroy(&pair.shared);
}
END_TEST

/* A worker that takes the mutex back at once does not play by the rules. */
START_TEST(a_rival_that_lets_nobody_turn_is_damage)
{
    struct pair pair = make_pair();
    enum accept_mutex_status status;
    uint64_t passed;

    passed = try_against_rival(&pair, &status);
    for (uint32_t turn = 0; status != ACCEPT_MUTEX_DAMAGED; turn++) {
        ck_assert_uint_lt(passed, 4 * BOUND_MS);
        atomic_store(&pair.mutex.lock->word, shm_lock_word(pair.rival, turn));
        ck_assert(accept_mutex_is_lost(&pair.mutex));
        accept_mutex_release(&pair.mutex, pair.now);
        pair.now += STEP_MS;
        passed += STEP_MS + try_against_rival(&pair, &status);
    }
    shared_destroy(&pair.shared);
}
END_TEST

/* Names of nobody, each another. */
START_TEST(a_name_of_nobody_is_damage_at_once)
{
    struct pair pair = make_pair();

    for (uint32_t i = 0; i < 10; i++) {
        struct slot_id nobody = { .slot = 2 + i, .serial = 1 + i };

        atomic_store(&pair.mutex.lock->word, shm_lock_word(nobody, i));
        ck_assert_int_eq(accept_mutex_try(&pair.mutex, pair.now, false),
            i == 0 ? ACCEPT_MUTEX_DAMAGED : ACCEPT_MUTEX_ACQUIRED);
        accept_mutex_release(&pair.mutex, pair.now);
        pair.now += STEP_MS;
    }
    shared_destroy(&pair.shared);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, nobody_is_the_only_holder_for_long);
    tcase_add_test(tcase, a_rival_that_lets_nobody_turn_is_damage);
    tcase_add_test(tcase, a_name_of_nobody_is_damage_at_once);
    tcase_add_test(tcase, a_holder_that_stands_still_loses_it);
    tcase_add_test(tcase, a_holder_that_waits_keeps_it);
    tcase_add_test(tcase, who_was_rung_takes_it_without_a_client);
    tcase_add_test(tcase, a_holder_that_turns_keeps_it);
    tcase_add_loop_test(tcase, who_leaves_it_to_others_waits_no_longer, 0, 2);
    tcase_add_loop_test(tcase, a_former_holder_steps_back, 0, 2);
    tcase_add_test(tcase, a_mutex_that_was_freed_is_not_lost);
    tcase_add_loop_test(tcase, a_made_up_owner_is_damage, 0, 6);
    tcase_add_test(tcase, our_own_name_is_damage);
    tcase_add_loop_test(tcase, it_goes_on_without, 0, 2);
    tcase_add_test(tcase, it_is_told_before_it_accepts);
    tcase_add_loop_test(
        tcase, the_bound_is_twice_the_delay_and_a_second_at_most, 0, (int)countof(bounds));
}

TEST_MAIN("accept_mutex", add_tests)

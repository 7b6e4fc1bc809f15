/* SPDX-License-Identifier: BSD-2-Clause */
/* Deadlines of connections under the simulated clock: every deadline is reached to the millisecond,
 * after any postponement, advance or withdrawal before, and at any distance. */
#include "event/loop.h"
#include "support/owner.h"
#include "support/random.h"

#define N 24

/* The model: the deadlines of the connections, and the owners. */
struct model {
    struct fixture *fixture;
    struct owner *owners[N];
    uint64_t due[N];
    unsigned expirations[N];
};

static uint64_t now_of(const struct model *model)
{
    return model->fixture->loop->clock.mono_ms;
}

static void start_model(struct model *model, enum fixture_events events)
{
    *model = (struct model) { .fixture = fixture_start_net(events, N) };
    for (int i = 0; i < N; i++)
        model->owners[i] = owner_open(model->fixture);
}

static void stop_model(struct model *model)
{
    fixture_end_all(model->fixture);
    for (int i = 0; i < N; i++)
        owner_free(&model->owners[i]);
    fixture_stop(model->fixture);
}

static void set(struct model *model, int i, uint64_t ms)
{
    conn_deadline_set(model->owners[i]->conn, ms);
    model->due[i] = now_of(model) + (ms > 0 ? ms : 1);
}

static void clear(struct model *model, int i)
{
    conn_deadline_clear(model->owners[i]->conn);
    model->due[i] = 0;
}

/* Lets time pass, and compares the expired deadlines. */
static void pass(struct model *model, uint64_t ms)
{
    fixture_pass(model->fixture, ms);
    for (int i = 0; i < N; i++) {
        if (model->due[i] != 0 && model->due[i] <= now_of(model)) {
            model->due[i] = 0;
            model->expirations[i]++;
        }
        ck_assert_uint_eq(model->owners[i]->expirations, model->expirations[i]);
        ck_assert(model->owners[i]->conn->limited == (model->due[i] != 0));
    }
}

/* Returns the ms until the first deadline; 0: there is none. */
static uint64_t until_next(const struct model *model)
{
    uint64_t first = UINT64_MAX;

    for (int i = 0; i < N; i++)
        if (model->due[i] != 0 && model->due[i] < first)
            first = model->due[i];
    return first == UINT64_MAX ? 0 : first - now_of(model);
}

START_TEST(each_is_reached_to_the_millisecond)
{
    static const uint64_t distances[] = { 0, 1, 2, 63, 64, 65, 127, 4095, 4096, 4097, 60000, 262144,
        600000, 1 << 24, 1 << 30, (1 << 30) + 1, CONN_DEADLINE_MOST };
    struct model model;

    start_model(&model, _i);
    set(&model, N - 1, UINT64_MAX / 2); /* the same as the latest */
    model.due[N - 1] = now_of(&model) + CONN_DEADLINE_MOST;
    for (unsigned i = 0; i < countof(distances); i++)
        set(&model, (int)i, distances[i]);
    for (uint64_t left; (left = until_next(&model)) > 0;) {
        if (left > 1)
            pass(&model, left - 1);
        pass(&model, 1);
    }
    for (unsigned i = 0; i < countof(distances); i++)
        ck_assert_uint_eq(model.owners[i]->expirations, 1);
    stop_model(&model);
}
END_TEST

/* Moves a deadline as a connection's messages do. */
START_TEST(putting_off_is_exact)
{
    struct model model;

    start_model(&model, _i);
    for (int i = 0; i < N; i++)
        set(&model, i, 65000);
    for (int round = 0; round < 50; round++) {
        pass(&model, 1777);
        for (int i = 0; i < N - 1; i++)
            if (round % (i + 1) == 0)
                set(&model, i, 65000);
    }
    pass(&model, 65000);
    ck_assert_uint_eq(until_next(&model), 0);
    stop_model(&model);
}
END_TEST

START_TEST(any_order_of_changes)
{
    uint64_t state = 4711 + (uint64_t)_i;
    struct model model;

    start_model(&model, _i);
    for (int step = 0; step < 3000; step++) {
        int i = (int)random_below(&state, N);
        uint32_t reach = 1u << random_below(&state, 22);

        switch (random_below(&state, 6)) {
        case 0:
            clear(&model, i);
            break;
        case 1:
            if (until_next(&model) > 1)
                pass(&model, until_next(&model) - 1);
            break;
        case 2:
            pass(&model, random_below(&state, reach) + 1);
            break;
        default:
            set(&model, i, random_below(&state, reach));
        }
    }
    stop_model(&model);
}
END_TEST

/* With timer_resolution deadlines are reached at ticks: none early, and each within two. */
START_TEST(ticks_find_each_deadline)
{
    static const uint64_t ticks[] = { 1, 50, 500, 999, 1000, 2500 };
    static const uint64_t distances[] = { 1, 400, 1000, 1200, 1500, 3000, 60000 };

    for (size_t i = 0; i < countof(ticks) * countof(distances); i++) {
        uint64_t tick = ticks[i / countof(distances)], distance = distances[i % countof(distances)];
        struct fixture *fixture = fixture_start_net(_i, 1);
        struct owner *owner = owner_open(fixture);
        uint64_t passed = 0;

        loop_wake_begin_ticks(fixture->loop, tick);
        conn_deadline_set(owner->conn, distance);
        while (owner->expirations == 0 && passed <= distance + 2 * tick) {
            sim_pass(fixture->sim, tick);
            loop_wake_tick(fixture->loop);
            fixture_turn(fixture);
            passed += tick;
        }
        ck_assert_uint_eq(owner->expirations, 1);
        ck_assert_uint_ge(passed, distance);
        fixture_end_all(fixture);
        owner_free(&owner);
        fixture_stop(fixture);
    }
}
END_TEST

static void expect_more(struct owner *owner)
{
    conn_deadline_set(owner->conn, owner->n);
    conn_wheel_check(owner->fixture->net, owner->n < CONN_DEADLINE_ASIDE);
}

/* The deadline of a connect becomes the connection's, sooner or later. */
START_TEST(opened_may_move_it)
{
    static const uint64_t moved[] = { 1, 5, 4000, 60000, 100000 };

    for (size_t i = 0; i < countof(moved); i++) {
        static const struct owner like = { .opened = expect_more };
        struct fixture *fixture = fixture_start_net(_i, 1);
        struct sim_server *server = owner_server(fixture);
        struct owner *owner = owner_connect(fixture, &like);

        owner->n = moved[i];
        conn_deadline_set(owner->conn, 60000);
        fixture_settle(fixture);
        owner_accept(server, owner);
        fixture_run(fixture);
        ck_assert_uint_eq(owner->openings, 1);
        if (moved[i] > 1)
            fixture_pass(fixture, moved[i] - 1);
        ck_assert_uint_eq(owner->expirations, 0);
        fixture_pass(fixture, 1);
        ck_assert_uint_eq(owner->expirations, 1);
        fixture_end_all(fixture);
        owner_free(&owner);
        fixture_stop(fixture);
    }
}
END_TEST

#define MANY 1200

/* Turns until all have expired; returns in how many turns some did. In each a millisecond passes,
 * as on a machine with nothing else to do. */
static unsigned turn_until_expired(struct fixture *fixture, struct owner **owners)
{
    unsigned turns = 0, before = 0, n = 0;

    for (int i = 0; i < 100 && n < MANY; i++) {
        sim_pass(fixture->sim, 1);
        fixture_turn(fixture);
        n = 0;
        for (unsigned k = 0; k < MANY; k++)
            n += owners[k]->expirations;
        turns += n > before;
        before = n;
    }
    ck_assert_uint_eq(n, MANY);
    return turns;
}

/* With the distances, all deadlines lie in the same bucket, of the first level or of a later
 * level. */
START_TEST(many_at_once_leave_others_their_turn)
{
    static const uint64_t distances[] = { 10, 100, 10000000 };
    struct owner **owners = calloc(MANY, sizeof(struct owner *));

    ck_assert_ptr_nonnull(owners);
    for (size_t i = 0; i < countof(distances); i++) {
        struct fixture *fixture = fixture_start_net(_i, MANY);
        unsigned turns;

        for (unsigned k = 0; k < MANY; k++) {
            owners[k] = owner_open(fixture);
            conn_deadline_set(owners[k]->conn, distances[i]);
        }
        sim_pass(fixture->sim, distances[i] - 1);
        turns = turn_until_expired(fixture, owners);
        ck_assert_uint_ge(turns, 3);
        ck_assert_uint_le(turns, 20);
        fixture_end_all(fixture);
        for (unsigned k = 0; k < MANY; k++)
            owner_free(&owners[k]);
        fixture_stop(fixture);
    }
    free(owners);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, each_is_reached_to_the_millisecond, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, putting_off_is_exact, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, opened_may_move_it, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, ticks_find_each_deadline, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, many_at_once_leave_others_their_turn, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, any_order_of_changes, 0, FIXTURE_EVENTS);
}

TEST_MAIN("conn_deadline", add_tests)

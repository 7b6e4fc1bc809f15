/* SPDX-License-Identifier: BSD-2-Clause */
/* The policy of shares: the worker with too many clients, the worker to leave them to, how often,
 * and the effect of a lie. */
#include "worker/accept_share.h"

#include "support/test.h"

#define WORKERS 4
#define GENERATION 3
#define MOST 1000

/* Workers of a generation; the first is ours. */
struct pool {
    struct shared *shared;
    struct slot_id ids[WORKERS];
    struct accept_share share;
    uint64_t now;
    uint32_t to;
};

static struct slot *slot_of(struct pool *pool, unsigned i)
{
    return shared_slot(pool->shared, pool->ids[i]);
}

static void set_clients(struct pool *pool, unsigned i, uint64_t n)
{
    slot_of(pool, i)->counters.n[COUNTER_ACTIVE] = n;
}

/* The worker does something else now. */
static void turn(struct pool *pool, unsigned i, enum callback callback)
{
    struct heartbeat *heartbeat = &slot_of(pool, i)->heartbeat;

    heartbeat->now = ((heartbeat_now(heartbeat) >> 16) + 1) << 16 | callback;
}

static struct pool *start(void)
{
    struct pool *pool = calloc(1, sizeof(*pool));

    ck_assert_ptr_nonnull(pool);
    pool->shared = shared_create(false);
    pool->now = 1000;
    ck_assert_ptr_nonnull(pool->shared);
    for (unsigned i = 0; i < WORKERS; i++) {
        ck_assert(slot_acquire(pool->shared, &pool->ids[i]));
        slot_set_place(pool->shared, pool->ids[i], slot_place(GENERATION, i));
        slot_of(pool, i)->load.takes = true;
    }
    ck_assert_int_eq(accept_share_init(&pool->share, pool->shared, pool->ids[0],
                         slot_place(GENERATION, 0), WORKERS),
        0);
    pool->share.most = MOST;
    return pool;
}

static void stop(struct pool *pool)
{
    accept_share_done(&pool->share);
    ck_assert_uint_eq(slot_of(pool, 0)->load.takes, 0);
    shared_destroy(&pool->shared);
    free(pool);
}

static enum share_verdict judge(struct pool *pool, uint32_t ours, bool yields)
{
    set_clients(pool, 0, ours);
    return accept_share_judge(&pool->share, ours, yields, pool->now, &pool->to);
}

/* Uses the tokens up; returns the number of passes. */
static unsigned use_tokens(struct pool *pool, uint32_t ours)
{
    unsigned n = 0;

    while (judge(pool, ours, false) == SHARE_PASS)
        ck_assert_uint_lt(++n, 1000);
    return n;
}

START_TEST(equal_shares_are_fair)
{
    struct pool *pool = start();

    for (uint32_t n = 0; n < 100; n++) {
        ck_assert_int_eq(judge(pool, n, _i), SHARE_FAIR);
        for (unsigned i = 1; i < WORKERS; i++)
            set_clients(pool, i, n + 1);
    }
    stop(pool);
}
END_TEST

START_TEST(one_more_is_left_to_the_least)
{
    struct pool *pool = start();

    for (unsigned i = 1; i < WORKERS; i++)
        set_clients(pool, i, 3);
    set_clients(pool, 2, 1);
    ck_assert_int_eq(judge(pool, 2, true), SHARE_FAIR); /* clients come in turns: as desired */
    ck_assert_int_eq(judge(pool, _i ? 3 : 2, _i), SHARE_PASS);
    ck_assert_uint_eq(pool->to, 2);
    set_clients(pool, 2, 3);
    turn(pool, 3, CALLBACK_WAIT);
    ck_assert_int_eq(judge(pool, _i ? 5 : 4, _i), SHARE_PASS); /* the one that waits, of equals */
    ck_assert_uint_eq(pool->to, 3);
    ck_assert_uint_eq(accept_share_find_least(&pool->share), 3);
    stop(pool);
}
END_TEST

/* Many clients more are a little, where all have many. */
START_TEST(the_margin_grows_with_the_mean)
{
    struct pool *pool = start();

    for (unsigned i = 1; i < WORKERS; i++)
        set_clients(pool, i, 320);
    ck_assert_int_eq(judge(pool, 339, true), SHARE_FAIR);
    ck_assert_int_eq(judge(pool, 341, true), SHARE_PASS);
    stop(pool);
}
END_TEST

/* Passes are bounded: 64 and 64 at once, and 20 and 50 a second; then a worker steps aside. */
START_TEST(tokens_bound_it)
{
    struct pool *pool = start();
    unsigned n;

    ck_assert_uint_eq(use_tokens(pool, 1), 64);
    ck_assert_uint_eq(use_tokens(pool, 100), 64);
    ck_assert_int_eq(judge(pool, 100, false), SHARE_FAIR);
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(judge(pool, 100, true), SHARE_ASIDE);
    ck_assert_int_eq(judge(pool, 100, true), SHARE_YIELD);
    ck_assert_int_eq(judge(pool, 1, true), SHARE_FAIR); /* not worth it */
    pool->now += 500;
    n = use_tokens(pool, 100);
    ck_assert_uint_ge(n, 33);
    ck_assert_uint_le(n, 35);
    stop(pool);
}
END_TEST

START_TEST(who_takes_none_does_not_count)
{
    struct pool *pool = start();
    struct slot_id other;

    for (unsigned i = 1; i < WORKERS; i++)
        slot_of(pool, i)->load.takes = false;
    ck_assert_int_eq(judge(pool, 100, true), SHARE_FAIR);
    ck_assert_uint_eq(accept_share_find_least(&pool->share), SHARE_NOBODY);

    /* neither do workers of a foreign generation, or of none yet, or the dead */
    ck_assert(slot_acquire(pool->shared, &other));
    shared_slot(pool->shared, other)->load.takes = true;
    ck_assert_int_eq(judge(pool, 100, true), SHARE_FAIR);
    slot_set_place(pool->shared, other, slot_place(GENERATION + 1, 1));
    ck_assert_int_eq(judge(pool, 100, true), SHARE_FAIR);
    slot_set_place(pool->shared, other, slot_place(GENERATION, 1));
    ck_assert_int_eq(judge(pool, 100, true), SHARE_PASS);
    slot_release(pool->shared, other);
    ck_assert_int_eq(judge(pool, 100, true), SHARE_FAIR);
    ck_assert_uint_eq(shared_slot(pool->shared, other)->load.takes, 0);
    stop(pool);
}
END_TEST

/* A rung worker without a turn is left out until it turns. */
START_TEST(a_silent_worker_is_left_out)
{
    struct pool *pool = start();

    for (unsigned i = 1; i < WORKERS; i++)
        set_clients(pool, i, 10);
    set_clients(pool, 1, 0);
    ck_assert_int_eq(judge(pool, 11, false), SHARE_PASS);
    ck_assert_uint_eq(pool->to, 1);
    accept_share_note_answer(&pool->share, 1);
    ck_assert_int_eq(judge(pool, 11, false), SHARE_PASS);
    ck_assert_uint_ne(pool->to, 1);

    turn(pool, 1, CALLBACK_WAIT);
    ck_assert_int_eq(judge(pool, 11, false), SHARE_PASS);
    ck_assert_uint_eq(pool->to, 1);
    turn(pool, 1, CALLBACK_NONE);
    accept_share_note_answer(&pool->share, 1);
    ck_assert_int_eq(judge(pool, 11, false), SHARE_PASS);
    ck_assert_uint_eq(pool->to, 1);
    stop(pool);
}
END_TEST

/* Room is with workers reporting room, and with fewer clients than possible; after a client has
 * waited in vain there is no room until another worker accepts a client. */
START_TEST(room_is_found)
{
    struct pool *pool = start();

    for (unsigned i = 1; i < WORKERS; i++)
        set_clients(pool, i, 10 * i);
    slot_of(pool, 1)->load.takes = SLOT_IS_CROWDED;
    ck_assert_uint_eq(accept_share_find_least(&pool->share), 1);
    ck_assert_uint_eq(accept_share_find_room(&pool->share, pool->now), 2);
    for (int i = 0; i < 4; i++) { /* perhaps late only */
        accept_share_note_refusal(&pool->share);
        ck_assert_uint_eq(accept_share_find_room(&pool->share, pool->now), 2);
    }
    accept_share_note_refusal(&pool->share);
    ck_assert_uint_eq(accept_share_find_room(&pool->share, pool->now), SHARE_NOBODY);
    pool->now += 250;
    ck_assert_uint_eq(accept_share_find_room(&pool->share, pool->now), 2);
    accept_share_note_refusal(&pool->share);
    ck_assert_uint_eq(accept_share_find_room(&pool->share, pool->now), SHARE_NOBODY);
    slot_of(pool, 3)->counters.n[COUNTER_ACCEPTS]++;
    ck_assert_uint_eq(accept_share_find_room(&pool->share, pool->now), 2);
    slot_of(pool, 3)->counters.n[COUNTER_ACCEPTS]++;
    accept_share_note_refusal(&pool->share);
    ck_assert_uint_eq(accept_share_find_room(&pool->share, pool->now), 2);
    set_clients(pool, 2, MOST);
    ck_assert_uint_eq(accept_share_find_room(&pool->share, pool->now), 3);
    slot_of(pool, 3)->load.takes = UINT32_MAX;
    ck_assert_uint_eq(accept_share_find_room(&pool->share, pool->now), SHARE_NOBODY);
    stop(pool);
}
END_TEST

/* An impossible number counts as the greatest possible. */
START_TEST(lies_are_bounded)
{
    static const uint64_t lies[] = { UINT64_MAX, UINT64_MAX / 2, UINT32_MAX, MOST + 1 };
    struct pool *pool = start();

    set_clients(pool, 1, lies[_i]);
    slot_of(pool, 1)->load.takes = UINT32_MAX;
    slot_of(pool, 1)->heartbeat.now = UINT64_MAX;
    ck_assert_int_eq(judge(pool, 0, true), SHARE_FAIR);
    use_tokens(pool, MOST / 2); /* above the two without clients, though not above the mean */
    ck_assert_int_eq(judge(pool, MOST / WORKERS, true), SHARE_FAIR);
    ck_assert_int_eq(judge(pool, MOST / 2 + MOST / 4, true), SHARE_ASIDE);
    ck_assert_uint_ne(pool->to, 1);
    stop(pool);
}
END_TEST

START_TEST(a_pass_is_found_by_its_worker)
{
    struct pool *pool = start();
    struct accept_share other;
    uint32_t cursor = 0;

    ck_assert_int_eq(
        accept_share_init(&other, pool->shared, pool->ids[2], slot_place(GENERATION, 2), WORKERS),
        0);
    accept_share_publish_pass(&pool->share, 17, 2);
    ck_assert_int_eq(accept_share_passed(&other, &cursor), 17);
    ck_assert_int_eq(accept_share_passed(&other, &cursor), -1);
    accept_share_publish_pass(&pool->share, 17, 1);
    cursor = 0;
    ck_assert_int_eq(accept_share_passed(&other, &cursor), -1);
    accept_share_publish_pass(&pool->share, -1, 2); /* the mutex */
    cursor = 0;
    ck_assert_int_eq(accept_share_passed(&other, &cursor), -1);

    slot_of(pool, 0)->load.passed = UINT32_MAX; /* no descriptor */
    cursor = 0;
    ck_assert_int_eq(accept_share_passed(&other, &cursor), -1);
    accept_share_done(&other);
    stop(pool);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, equal_shares_are_fair, 0, 2);
    tcase_add_loop_test(tcase, one_more_is_left_to_the_least, 0, 2);
    tcase_add_test(tcase, the_margin_grows_with_the_mean);
    tcase_add_test(tcase, tokens_bound_it);
    tcase_add_test(tcase, who_takes_none_does_not_count);
    tcase_add_test(tcase, a_silent_worker_is_left_out);
    tcase_add_test(tcase, room_is_found);
    tcase_add_loop_test(tcase, lies_are_bounded, 0, 4);
    tcase_add_test(tcase, a_pass_is_found_by_its_worker);
}

TEST_MAIN("accept_share", add_tests)

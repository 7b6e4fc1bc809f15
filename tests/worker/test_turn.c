/* SPDX-License-Identifier: BSD-2-Clause */
/* The turn of the loop, and the accept mutex. */
#include "worker/shop.h"

#include <string.h>

static const struct shop_options one_of_two = {
    .connections = 16,
    .processes = 2,
    .mutex = true,
};
static const struct shop_options single = { .connections = 16 };

struct clerk {
    struct shop *shop;
    struct timer timer;
};

/* Connections have been accepted by now, and not opened; the mutex is free again. */
static void clerk_expired(struct loop *loop, struct timer *timer)
{
    struct shop *shop = container_of(timer, struct clerk, timer)->shop;

    (void)loop;
    ck_assert_uint_eq(fake_waiting(shop->doors[0]), 0);
    ck_assert_uint_eq(shop->openings, 0);
    ck_assert(!shop_holds_mutex(shop));
    shop_note(shop, 't');
}

START_TEST(a_turn_has_its_order)
{
    struct shop *shop = shop_open(&one_of_two);
    struct clerk clerk = { .shop = shop, .timer.expired = clerk_expired };

    timer_set(&shop->worker.stream.net.loop, &clerk.timer, 1);
    fake_pass(1);
    shop_visit(shop);
    shop_turn(shop);
    ck_assert_str_eq(shop->order, "wto");
    ck_assert_uint_eq(shop->shared->slots[0].counters.n[COUNTER_ACCEPTS], 1);
    shop_turn(shop);
    ck_assert_str_eq(shop->order, "w");
    shop_close(shop);
}
END_TEST

static void check_watching(struct loop *loop, int timeout)
{
    struct shop *shop = (struct shop *)worker_of_loop(loop);

    (void)timeout;
    ck_assert_uint_eq(shop->shared->accept_mutex.owner, (uint64_t)shop->heritage.slot.serial << 32);
    ck_assert(shop->doors[0]->listening && !shop->doors[0]->exclusive);
    shop_note(shop, 'w');
}

START_TEST(the_holder_watches_and_gives_the_lock_back)
{
    struct shop *shop = shop_open(&one_of_two);

    ck_assert(!shop->doors[0]->listening);
    fake_on_wait(check_watching);
    for (int i = 0; i < 3; i++) {
        shop_turn(shop);
        ck_assert_str_eq(shop->order, "w");
        ck_assert(!shop_holds_mutex(shop));
    }
    shop_close(shop);
}
END_TEST

static void check_not_watching(struct loop *loop, int timeout)
{
    struct shop *shop = (struct shop *)worker_of_loop(loop);

    ck_assert(!shop->doors[0]->listening);
    ck_assert_int_ge(timeout, 0);
    ck_assert_int_le(timeout, SHOP_DELAY);
    shop_note(shop, 'n');
}

START_TEST(who_does_not_hold_it_does_not_watch)
{
    struct shop *shop = shop_open(&one_of_two);
    struct slot_id rival = shop_rival(shop);

    ck_assert(shm_lock_try(&shop->shared->accept_mutex, rival));
    fake_on_wait(check_not_watching);
    shop_visit(shop);
    for (int i = 0; i < 3; i++) {
        shop_turn(shop);
        ck_assert_str_eq(shop->order, "n");
        ck_assert_int_eq(fake_timeout(), SHOP_DELAY);
    }
    shm_lock_release(&shop->shared->accept_mutex, rival);
    fake_on_wait(check_watching);
    shop_turn(shop);
    ck_assert_uint_eq(shop->openings, 1);

    /* and once more: it watched in its last turn */
    ck_assert(shm_lock_try(&shop->shared->accept_mutex, rival));
    fake_on_wait(check_not_watching);
    shop_turn(shop);
    ck_assert_str_eq(shop->order, "n");
    shm_lock_release(&shop->shared->accept_mutex, rival);
    shop_close(shop);
}
END_TEST

static void nothing(struct loop *loop, struct timer *timer)
{
    (void)loop;
    (void)timer;
}

START_TEST(the_wait_is_as_long_as_the_nearest_of_all)
{
    struct shop *shop = shop_open(&one_of_two);
    struct loop *loop = &shop->worker.stream.net.loop;
    struct slot_id rival = shop_rival(shop);
    struct timer near = { .expired = nothing }, far = { .expired = nothing };

    shop_turn(shop);
    ck_assert_int_eq(fake_timeout(), -1); /* it holds the mutex */
    timer_set(loop, &far, 10000);
    shop_turn(shop);
    ck_assert_int_eq(fake_timeout(), 10000);

    ck_assert(shm_lock_try(&shop->shared->accept_mutex, rival));
    timer_set(loop, &far, 10000);
    timer_set(loop, &near, 100);
    shop_turn(shop);
    ck_assert_int_eq(fake_timeout(), 100);
    shop_turn(shop);
    ck_assert_int_eq(fake_timeout(), SHOP_DELAY);
    timer_del(loop, &far);
    shm_lock_release(&shop->shared->accept_mutex, rival);
    shop_close(shop);
}
END_TEST

START_TEST(what_waits_for_this_turn_is_not_kept_waiting)
{
    struct shop *shop = shop_open(&single);
    struct fake_socket *client = shop_visit(shop);

    shop_turn(shop);
    fake_says(client, "hello");
    fb_stop(shop->conn);
    shop_turn(shop);
    ck_assert_uint_eq(client->sent_n, 0);
    fb_resume(shop->conn);
    shop_turn(shop);
    ck_assert_int_eq(fake_timeout(), 0); /* resuming posts to the next turn */
    ck_assert_uint_eq(client->sent_n, 5);
    shop_turn(shop);
    ck_assert_int_eq(fake_timeout(), -1);
    shop_close(shop);
}
END_TEST

START_TEST(alone_it_needs_no_mutex)
{
    static const struct shop_options alone[] = {
        { .connections = 16, .processes = 1, .mutex = true },
        { .connections = 16, .mutex = true },
        { .connections = 16, .processes = 1 },
    };

    for (size_t i = 0; i < countof(alone); i++) {
        struct shop *shop = shop_open(&alone[i]);
        struct slot_id rival = shop_rival(shop);

        ck_assert(shm_lock_try(&shop->shared->accept_mutex, rival));
        ck_assert(shop->doors[0]->listening && !shop->doors[0]->exclusive);
        shop_visit(shop);
        shop_turn(shop);
        ck_assert_int_eq(fake_timeout(), -1);
        ck_assert_uint_eq(shop->openings, 1);
        shm_lock_release(&shop->shared->accept_mutex, rival);
        shop_close(shop);
    }
}
END_TEST

START_TEST(without_the_mutex_listeners_are_exclusive_where_they_can_be)
{
    const struct shop_options edge = { .connections = 16, .processes = 2 };
    const struct shop_options level = {
        .mechanism = &fake_level,
        .connections = 16,
        .processes = 2,
    };
    struct shop *shop = shop_open(&edge);

    ck_assert(shop->doors[0]->listening && shop->doors[0]->exclusive);
    shop_turn(shop);
    ck_assert(shop->doors[0]->listening);
    ck_assert_int_eq(fake_timeout(), -1);
    shop_close(shop);

    shop = shop_open(&level);
    ck_assert(shop->doors[0]->listening && !shop->doors[0]->exclusive);
    shop_close(shop);
}
END_TEST

START_TEST(a_reuseport_socket_is_one_workers)
{
    const struct shop_options second = {
        .connections = 16,
        .processes = 2,
        .index = 1,
        .mutex = true,
        .reuseport = 4,
    };
    struct shop *shop = shop_open(&second);
    struct slot_id rival = shop_rival(shop);

    /* two more than there are workers now are shared out */
    ck_assert(shm_lock_try(&shop->shared->accept_mutex, rival)); /* which is not needed */
    shop_turn(shop);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(shop->doors[i]->listening, i % 2 == 1);
        ck_assert(!shop->doors[i]->exclusive);
        fake_client(shop->doors[i]);
    }
    shop_turn_until_open(shop, 2);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(fake_waiting(shop->doors[i]), 1 - i % 2);
    shm_lock_release(&shop->shared->accept_mutex, rival);
    shop_close(shop);
}
END_TEST

START_TEST(it_takes_one_or_all)
{
    struct shop_options options = one_of_two;
    struct shop *shop;

    for (int many = 0; many < 2; many++) {
        options.multi_accept = many;
        shop = shop_open(&options);
        shop_crowd(shop, 5);
        shop_turn(shop);
        ck_assert_str_eq(shop->order, many ? "wooooo" : "wo");
        shop_turn(shop);
        ck_assert_str_eq(shop->order, many ? "w" : "wo");
        shop_turn_until_open(shop, 5);
        shop_close(shop);
    }
}
END_TEST

/* accept_disabled = connections / 8 - free */
START_TEST(who_has_more_than_its_share_leaves_it_to_others)
{
    struct shop *shop = shop_open(&one_of_two);
    int64_t disabled;

    for (unsigned n = 1; n <= 14; n++) {
        shop_visit(shop);
        shop_turn(shop);
        ck_assert_uint_eq(shop->openings, n);
        ck_assert_int_eq(shop->worker.accept.disabled, 16 / 8 - (16 - (int)n));
    }
    shop_crowd(shop, 2);
    shop_turn(shop);
    ck_assert_uint_eq(shop->openings, 15);
    ck_assert_int_eq(shop->worker.accept.disabled, 1);

    fake_on_wait(check_not_watching); /* although nobody holds the lock */
    shop_turn(shop);
    ck_assert_uint_eq(shop->openings, 15);
    ck_assert_int_eq(shop->worker.accept.disabled, 0);
    fake_on_wait(check_watching);
    shop_turn(shop);
    ck_assert_uint_eq(shop->openings, 16);
    disabled = shop->worker.accept.disabled;
    ck_assert_int_eq(disabled, 2);
    fake_on_wait(check_not_watching);
    shop_turn(shop);
    shop_turn(shop);
    ck_assert_int_eq(shop->worker.accept.disabled, 0);
    shop_close(shop);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_turn_has_its_order);
    tcase_add_test(tcase, the_holder_watches_and_gives_the_lock_back);
    tcase_add_test(tcase, who_does_not_hold_it_does_not_watch);
    tcase_add_test(tcase, the_wait_is_as_long_as_the_nearest_of_all);
    tcase_add_test(tcase, what_waits_for_this_turn_is_not_kept_waiting);
    tcase_add_test(tcase, alone_it_needs_no_mutex);
    tcase_add_test(tcase, without_the_mutex_listeners_are_exclusive_where_they_can_be);
    tcase_add_test(tcase, a_reuseport_socket_is_one_workers);
    tcase_add_test(tcase, it_takes_one_or_all);
    tcase_add_test(tcase, who_has_more_than_its_share_leaves_it_to_others);
}

TEST_MAIN("turn", add_tests)

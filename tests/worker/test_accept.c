/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepting when there is not enough of something, and looking after who was left behind. */
#include "worker/shop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FULL "t: [alert] 2 worker_connections are not enough, accepting is suspended\n"

static const struct shop_options small[] = {
    { .connections = 2 },
    { .connections = 2, .multi_accept = true },
    { .connections = 2, .processes = 2 },
    { .connections = 2, .processes = 2, .mutex = true, .multi_accept = true },
};

static void leave(struct shop *shop)
{
    fb_close(shop->conn);
    net_flush(&shop->worker.stream.net);
}

START_TEST(a_full_worker_pauses_until_a_slot_is_free)
{
    struct shop *shop = shop_open(&small[_i]);
    uint64_t before;

    shop_crowd(shop, 2);
    shop_turn_until_open(shop, 2);
    shop_turn(shop);
    ck_assert_str_eq(shop_logged(shop), ""); /* nobody was turned away */

    shop_crowd(shop, 3);
    before = shop->worker.stream.net.loop.clock.mono_ms;
    for (int i = 0; i < 10; i++) /* it does not spin */
        shop_turn(shop);
    ck_assert_uint_eq(shop->openings, 2);
    ck_assert_uint_ge(shop->worker.stream.net.loop.clock.mono_ms, before + 4 * SHOP_DELAY);
    ck_assert_str_eq(shop_logged(shop), FULL);

    for (unsigned n = 3; n <= 5; n++) {
        leave(shop);
        for (int i = 0; i < 10 && shop->openings < n; i++)
            shop_turn(shop);
        ck_assert_uint_eq(shop->openings, n);
        for (int i = 0; i < 5; i++)
            shop_turn(shop);
    }
    ck_assert_uint_eq(fake_waiting(shop->doors[0]), 0);
    ck_assert_ptr_null(strstr(shop_logged(shop), "[alert]")); /* once is enough */
    net_fail_all(&shop->worker.stream.net, FB_DRAINED);
    shop_logged(shop);
    shop_close(shop);
}
END_TEST

START_TEST(a_shortage_is_said_again_after_a_while)
{
    struct shop *shop = shop_open(&small[0]);

    shop_crowd(shop, 3);
    shop_turn_until_open(shop, 2);
    shop_turn(shop);
    ck_assert_str_eq(shop_logged(shop), FULL);
    net_fail_all(&shop->worker.stream.net, FB_DRAINED);
    shop_turn_until_open(shop, 1);
    shop_logged(shop);
    fake_pass(61 * 1000);
    shop_crowd(shop, 2);
    shop_turn_until_open(shop, 2);
    shop_turn(shop);
    ck_assert_str_eq(shop_logged(shop), FULL);
    net_fail_all(&shop->worker.stream.net, FB_DRAINED);
    shop_logged(shop);
    shop_close(shop);
}
END_TEST

/* What is short, and what else is wrong with the listener itself. */
static const int shortages[] = { EMFILE, ENFILE, ENOMEM, ENOBUFS, EINVAL };

START_TEST(a_shortage_pauses_for_a_while)
{
    for (size_t i = 0; i < countof(small); i++) {
        struct shop *shop = shop_open(&small[i]);
        char expected[256];

        shop_visit(shop);
        shop->doors[0]->accept_error = shortages[_i];
        shop_turn(shop);
        snprintf(expected, sizeof(expected),
            "t: [crit] accept4() failed, accepting is suspended (%d: %s)\n", shortages[_i],
            strerror(shortages[_i]));
        ck_assert_str_eq(shop_logged(shop), expected);
        for (int j = 0; j < 10; j++) { /* each takes the delay, as the clock says */
            uint64_t before = shop->worker.stream.net.loop.clock.mono_ms;

            ck_assert(!shop->doors[0]->listening);
            shop_turn(shop); /* waits */
            ck_assert_uint_eq(shop->worker.stream.net.loop.clock.mono_ms, before + SHOP_DELAY);
            shop_turn(shop); /* and tries again */
        }
        ck_assert_str_eq(shop_logged(shop), ""); /* once is enough */
        shop->doors[0]->accept_error = 0;
        shop_turn_until_open(shop, 1);
        net_fail_all(&shop->worker.stream.net, FB_DRAINED);
        shop_logged(shop);
        shop_close(shop);
    }
}
END_TEST

/* Of the client that was waiting: the next one may be fine. */
static const int losses[] = { ECONNABORTED, ENETDOWN, EPROTO, EHOSTUNREACH, EPERM };

START_TEST(a_client_that_was_lost_is_no_shortage)
{
    for (size_t i = 0; i < countof(small); i += 2) { /* those that take one a turn */
        struct shop *shop = shop_open(&small[i]);
        char expected[256];

        shop->doors[0]->accept_error = losses[_i];
        shop_turn(shop);
        snprintf(expected, sizeof(expected), "t: [info] accept4() failed (%d: %s)\n", losses[_i],
            strerror(losses[_i]));
        ck_assert_str_eq(shop_logged(shop), expected);
        ck_assert(shop->doors[0]->listening);
        shop->doors[0]->accept_error = 0;
        shop_visit(shop);
        shop_turn(shop);
        ck_assert_uint_eq(shop->openings, 1);
        shop_close(shop);
    }
}
END_TEST

/* The kernel has woken this one alone. */
START_TEST(an_exclusive_waiter_that_pauses_tells_the_others)
{
    struct shop *shop = shop_open(&small[2]);

    ck_assert(shop->doors[0]->exclusive);
    shop_crowd(shop, 3);
    shop_turn_until_open(shop, 2);
    ck_assert_uint_eq(shop_told(shop), 0);
    shop_turn(shop);
    ck_assert_uint_eq(shop_told(shop), MESSAGE_RESCAN);
    ck_assert_uint_eq(shop_told(shop), 0);
    net_fail_all(&shop->worker.stream.net, FB_DRAINED);
    shop_logged(shop);
    shop_close(shop);
}
END_TEST

START_TEST(a_look_takes_all_who_wait)
{
    static const struct shop_options options = { .connections = 16, .processes = 2 };
    struct shop *shop = shop_open(&options);

    accept_rescan(&shop->worker); /* nobody is there */
    shop_turn(shop);
    ck_assert_uint_eq(shop->openings, 0);
    shop_crowd(shop, 5);
    accept_rescan(&shop->worker);
    shop_turn(shop);
    ck_assert_uint_eq(shop->openings, 5);
    shop_crowd(shop, 2); /* after it, one a turn again */
    shop_turn(shop);
    ck_assert_uint_eq(shop->openings, 6);
    shop_turn(shop);
    shop_close(shop);
}
END_TEST

START_TEST(before_it_is_told_it_accepts_nothing)
{
    static const struct shop_options options = { .connections = 16, .processes = 2, .mutex = true };
    struct shop *shop = shop_prepare(&options);

    shop_visit(shop);
    accept_rescan(&shop->worker);
    for (int i = 0; i < 3; i++)
        shop_turn(shop);
    ck_assert_uint_eq(shop->openings, 0);
    ck_assert(!shop->doors[0]->listening);
    accept_open(&shop->worker);
    shop_turn_until_open(shop, 1);
    shop_close(shop);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_full_worker_pauses_until_a_slot_is_free, 0, (int)countof(small));
    tcase_add_test(tcase, a_shortage_is_said_again_after_a_while);
    tcase_add_loop_test(tcase, a_shortage_pauses_for_a_while, 0, (int)countof(shortages));
    tcase_add_loop_test(tcase, a_client_that_was_lost_is_no_shortage, 0, (int)countof(losses));
    tcase_add_test(tcase, an_exclusive_waiter_that_pauses_tells_the_others);
    tcase_add_test(tcase, a_look_takes_all_who_wait);
    tcase_add_test(tcase, before_it_is_told_it_accepts_nothing);
}

TEST_MAIN("accept", add_tests)

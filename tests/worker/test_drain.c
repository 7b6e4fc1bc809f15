/* SPDX-License-Identifier: BSD-2-Clause */
/* What a worker is told, and how it ends. */
#include "worker/shop.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define DRAINING "t: [notice] gracefully shutting down\n"

static const struct shop_options one_of_two = {
    .connections = 16,
    .processes = 2,
    .mutex = true,
};

static void order(struct shop *shop, enum command order)
{
    signals_give(order);
    worker_take_commands(&shop->worker);
}

START_TEST(a_drain_lets_sessions_finish)
{
    struct shop *shop = shop_open(&one_of_two);
    struct fake_socket *first = shop_visit(shop);

    shop_turn(shop);
    shop_crowd(shop, 3); /* they came before it: nobody else may know of them */
    order(shop, COMMAND_QUIT);
    ck_assert_str_eq(shop_logged(shop), DRAINING);
    ck_assert_uint_eq(fake_waiting(shop->doors[0]), 0);
    ck_assert(!shop->doors[0]->listening);
    ck_assert_int_eq(shop->listener->fds[0], -1);
    order(shop, COMMAND_QUIT); /* once is enough */

    shop_turn(shop);
    ck_assert_int_eq(fake_timeout(), 0); /* they are opened without waiting for anything */
    ck_assert_uint_eq(shop->openings, 4);
    shop_turn(shop);
    ck_assert_int_eq(fake_timeout(), -1); /* the mutex is no concern of it any more */
    fake_says(first, "still here");
    shop_turn(shop);
    ck_assert_uint_eq(first->sent_n, 10);
    ck_assert_int_eq(shop->worker.phase, WORKER_DRAINING);

    net_fail_all(&shop->worker.stream.net, FB_DRAINED);
    shop_logged(shop);
    worker_run(&shop->worker); /* returns, because nothing is left */
    shop_close(shop);
}
END_TEST

START_TEST(a_drain_ends)
{
    struct shop_options options = one_of_two;
    struct shop *shop;
    uint64_t start;

    options.shutdown_timeout = 3000;
    shop = shop_open(&options);
    shop_crowd(shop, 2);
    shop_turn_until_open(shop, 2);
    order(shop, COMMAND_QUIT);
    start = shop->worker.stream.net.loop.clock.mono_ms;
    worker_run(&shop->worker);
    ck_assert_uint_eq(shop->worker.stream.net.loop.clock.mono_ms, start + 3000);
    ck_assert_uint_eq(shop->closings, 2);
    ck_assert_int_eq(shop->reason, FB_DRAINED);
    ck_assert_ptr_nonnull(strstr(shop_logged(shop),
        "t: [notice] worker_shutdown_timeout has passed, 2 connections are closed\n"));
    shop_close(shop);
}
END_TEST

START_TEST(an_end_at_once_closes_everything)
{
    struct shop *shop = shop_open(&one_of_two);

    shop_crowd(shop, 2);
    shop_turn_until_open(shop, 2);
    shop_visit(shop); /* is not taken any more */
    order(shop, COMMAND_TERMINATE);
    worker_run(&shop->worker);
    ck_assert_str_eq(shop_logged(shop), "");
    shop_close(shop);
}
END_TEST

/* From here on with the kernel's channel. */

static struct shop *open_real(void)
{
    struct shop_options options = one_of_two;

    options.mechanism = mechanism_find(NULL);
    return shop_prepare(&options);
}

static void send_order(struct shop *shop, enum channel_message_kind kind, uint32_t argument, int fd)
{
    struct channel_message message = { .kind = kind, .argument = argument, .fd = fd };

    ck_assert_int_eq(channel_send(shop->master, &message), 0);
}

static void check_told(struct shop *shop, enum channel_message_kind kind)
{
    struct pollfd ready = { .fd = shop->master, .events = POLLIN };

    ck_assert_int_eq(poll(&ready, 1, 10000), 1);
    ck_assert_uint_eq(shop_told(shop), kind);
}

START_TEST(the_master_has_it_begin)
{
    struct shop *shop = open_real();

    worker_send(&shop->worker, MESSAGE_READY);
    check_told(shop, MESSAGE_READY);
    ck_assert_int_ne(shop->worker.accept.phase, ACCEPT_OPEN);
    send_order(shop, MESSAGE_ACCEPT, 0, -1);
    worker_turn(&shop->worker);
    ck_assert_int_eq(shop->worker.accept.phase, ACCEPT_OPEN);
    check_told(shop, MESSAGE_ACCEPTING);
    shop_close(shop);
}
END_TEST

START_TEST(one_that_drains_does_not_begin)
{
    struct shop *shop = open_real();

    order(shop, COMMAND_QUIT);
    send_order(shop, MESSAGE_ACCEPT, 0, -1);
    worker_turn(&shop->worker);
    ck_assert_int_ne(shop->worker.accept.phase, ACCEPT_OPEN);
    check_told(shop, MESSAGE_RELEASED);
    check_told(shop, MESSAGE_ACCEPTING); /* else the master would wait for it */
    ck_assert_str_eq(shop_logged(shop), DRAINING);
    shop_close(shop);
}
END_TEST

START_TEST(the_master_hands_it_new_logs)
{
    struct shop *shop = open_real();
    int old = shop->target.fd, file[2], spare;

    ck_assert_int_eq(pipe2(file, O_CLOEXEC | O_NONBLOCK), 0);
    shop->target.fd = dup(old); /* which is closed for the new one */
    spare = shop->target.fd;
    send_order(shop, MESSAGE_LOG_FILE, 7, file[1]); /* there is no such log: it is dropped */
    send_order(shop, MESSAGE_LOG_FILE, 0, file[1]);
    worker_turn(&shop->worker);
    close(file[1]);
    ck_assert_int_ne(shop->target.fd, spare);
    log_write(&shop->worker.log, LEVEL_NOTICE, 0, "into the new file");
    close(shop->target.fd);
    shop->target.fd = old;

    ck_assert_int_eq(read(file[0], shop->text, sizeof(shop->text)), 30);
    ck_assert_int_eq(memcmp(shop->text, "t: [notice] into the new file\n", 30), 0);
    ck_assert_int_eq(read(file[0], shop->text, 1), 0); /* no other end of it is left */
    close(file[0]);
    shop_close(shop);
}
END_TEST

START_TEST(without_its_master_it_drains)
{
    struct shop *shop = open_real();

    accept_open(&shop->worker);
    close(shop->master);
    shop->master = -1;
    worker_run(&shop->worker);
    ck_assert_str_eq(shop_logged(shop), "t: [alert] the master process has gone\n" DRAINING);
    ck_assert_ptr_null(shop->worker.channel);
    worker_send(&shop->worker, MESSAGE_RESCAN); /* to nobody */
    shop_close(shop);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_drain_lets_sessions_finish);
    tcase_add_test(tcase, a_drain_ends);
    tcase_add_test(tcase, an_end_at_once_closes_everything);
    tcase_add_test(tcase, the_master_has_it_begin);
    tcase_add_test(tcase, one_that_drains_does_not_begin);
    tcase_add_test(tcase, the_master_hands_it_new_logs);
    tcase_add_test(tcase, without_its_master_it_drains);
}

TEST_MAIN("drain", add_tests)

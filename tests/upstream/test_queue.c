/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions waiting for room in a group: order, timeout, the queue's size, and early leavers. */
#include "kit/kit.h"
#include "upstream/led.h"

#include <stdio.h>

extern const fb_protocol fb_protocol_proxy;

#define ADDRESS "10.0.0.1:80"
#define FULL "upstream u { server " ADDRESS " max_conns=1; queue 2 timeout=5s; }"

/* Starts a worker with a single server for one client, and connects the client. */
static fb_test *start(fb_test_peer **client)
{
    fb_test *test = led_start(FULL, "proxy_pass u;");

    *client = led_connect(test, ADDRESS);
    return test;
}

/* Checks the statistics of the waits in the group, which have the first entry. */
static void check_waits(
    fb_test *test, uint64_t active, uint64_t served, uint64_t failed, uint64_t left, uint64_t ms)
{
    struct stats_tries_totals totals;

    stats_read(zone_memory(test->cycle->stream.tries), 1, &totals, sizeof(totals));
    ck_assert_uint_eq(totals.begun, active + served + failed + left);
    ck_assert_uint_eq(totals.active, active);
    ck_assert_uint_eq(totals.ended[0], served);
    ck_assert_uint_eq(totals.ended[1], failed);
    ck_assert_uint_eq(totals.ended[2], left);
    ck_assert_uint_eq(totals.times[0].ms, ms);
}

/* Connects a client that waits. */
static fb_test_peer *connect_waiting(fb_test *test)
{
    fb_test_peer *client = fb_test_connect(test);

    fb_test_run(test);
    ck_assert(!fb_test_is_closed(client));
    ck_assert_ptr_null(fb_test_accept(fb_test_serve(test, ADDRESS, FB_TEST_ACCEPTS)));
    return client;
}

START_TEST(first_come_first_served)
{
    fb_test_peer *clients[3];
    fb_test *test = start(&clients[0]);

    clients[1] = connect_waiting(test);
    clients[2] = connect_waiting(test);
    led_connect(test, NULL); /* no place is left in the queue */
    led_logged(test, "no live upstreams while connecting to upstream", 1);
    check_waits(test, 2, 0, 0, 0, 0);
    for (int i = 1; i < 3; i++) {
        led_close(test, clients[i - 1]);
        led_expect(test, clients[i], ADDRESS);
    }
    check_waits(test, 0, 2, 0, 0, 0);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(no_room_in_time)
{
    fb_test_peer *client, *waiting;
    fb_test *test = start(&client);

    waiting = connect_waiting(test);
    fb_test_pass(test, 4900);
    ck_assert(!fb_test_is_closed(waiting));
    fb_test_pass(test, 200);
    ck_assert(fb_test_is_closed(waiting));
    led_logged(test, "upstream queue timed out", 1);
    check_waits(test, 0, 0, 1, 0, 5000);
    ck_assert(!fb_test_is_closed(client));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A place in the queue is free as soon as its client has gone. */
START_TEST(clients_leave_the_queue)
{
    fb_test_peer *client, *first, *second, *third;
    fb_test *test = start(&client);

    first = connect_waiting(test);
    second = connect_waiting(test);
    led_close(test, first);
    fb_test_pass(test, 1500); /* a client not read from is looked at every second */
    third = connect_waiting(test);
    check_waits(test, 2, 0, 0, 1, 0);
    led_close(test, client);
    led_expect(test, second, ADDRESS);
    led_close(test, third);
    fb_test_pass(test, 1500);
    led_close(test, second);
    led_connect(test, ADDRESS);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A client that ends its half without a byte has gone; bytes before the end are served. */
START_TEST(clients_end_their_half)
{
    fb_test_peer *client, *silent, *speaker, *next, *server;
    fb_test *test = start(&client);

    silent = connect_waiting(test);
    speaker = connect_waiting(test);
    fb_test_shut(silent);
    fb_test_says(speaker, "hi");
    fb_test_shut(speaker);
    fb_test_pass(test, 1500);
    ck_assert(fb_test_is_closed(silent));
    ck_assert(!fb_test_is_closed(speaker));
    led_logged(test,
        "client disconnected, bytes from/to client:0/0, session time: 0.500, reason: the client "
        "closed",
        1);
    next = connect_waiting(test);
    led_close(test, client);
    server = fb_test_accept(fb_test_serve(test, ADDRESS, FB_TEST_ACCEPTS));
    ck_assert_ptr_nonnull(server);
    ck_assert_uint_eq(fb_test_heard(server).n, 2);
    led_close(test, next);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(clients_keep_half_a_connection)
{
    fb_test *test = led_start(FULL, "proxy_pass u; proxy_half_close on;");
    fb_test_peer *client = led_connect(test, ADDRESS), *waiting;

    waiting = connect_waiting(test);
    fb_test_shut(waiting);
    fb_test_pass(test, 1500);
    ck_assert(!fb_test_is_closed(waiting));
    led_close(test, client);
    ck_assert_ptr_nonnull(fb_test_accept(fb_test_serve(test, ADDRESS, FB_TEST_ACCEPTS)));
    fb_test_reset(waiting);
    fb_test_run(test);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A draining worker serves out its queue. */
START_TEST(drains)
{
    fb_test_peer *client, *waiting;
    fb_test *test = start(&client);

    waiting = connect_waiting(test);
    fb_test_drain(test, 0);
    fb_test_run(test);
    ck_assert(!fb_test_is_closed(waiting));
    led_close(test, client);
    led_expect(test, waiting, ADDRESS);
    led_close(test, waiting);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A worker ends while sessions wait, for room and for a name. */
START_TEST(ends_while_they_wait)
{
    fb_test_peer *client;
    fb_test *test = start(&client);

    connect_waiting(test);
    connect_waiting(test);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A session may choose every server it has not tried, and no tried server. */
START_TEST(sessions_that_have_tried_a_server)
{
    fb_test *test = led_start("upstream u { server 10.0.0.1:80; server 10.0.0.2:80 max_conns=1; "
                              "queue 2 timeout=5s; }",
        "proxy_pass u;");

    fb_test_serve(test, "10.0.0.1:80", FB_TEST_REFUSES);
    fb_test_serve(test, "10.0.0.2:80", FB_TEST_ACCEPTS);
    for (int i = 0; i < 4; i++)
        fb_test_connect(test);
    fb_test_run(test);
    fb_test_pass(test, 20000);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A session that waits for primaries and backups takes whichever has room first. */
START_TEST(primaries_after_backups)
{
    static const char *const addresses[] = { "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80" };
    fb_test *test = led_start("upstream u { server 10.0.0.1:80 max_conns=1; "
                              "server 10.0.0.2:80 max_conns=1; "
                              "server 10.0.0.3:80 max_conns=1 backup; queue 2 timeout=5s; }",
        "proxy_pass u;");
    fb_test_peer *clients[3], *waiting;

    for (int i = 0; i < 3; i++)
        clients[i] = led_connect(test, addresses[i]);
    waiting = fb_test_connect(test);
    fb_test_run(test);
    led_close(test, clients[0]);
    led_expect(test, waiting, addresses[0]);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Room is made by a session's end, or by the death of a worker. */
START_TEST(room_that_another_worker_makes)
{
    const fb_test_options options = { .size = sizeof(options),
        .stream = "upstream u { zone z 64k; server " ADDRESS " max_conns=1; queue 2 timeout=5s; }",
        .server = "proxy_pass u;",
        .workers = 2 };
    fb_test *test = fb_test_start_with(&fb_protocol_proxy, &options);
    fb_test_server *server = fb_test_serve(test, ADDRESS, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect_to(test, 0, 0), *waiting;

    led_expect(test, client, ADDRESS);
    waiting = fb_test_connect_to(test, 1, 0);
    fb_test_pass(test, 1000);
    ck_assert(!fb_test_is_closed(waiting));
    ck_assert_ptr_null(fb_test_accept(server));
    if (_i == 0)
        led_close(test, client);
    else
        fb_test_kill(test, 0);
    fb_test_pass(test, 100);
    led_expect(test, waiting, ADDRESS);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, first_come_first_served);
    tcase_add_test(tcase, no_room_in_time);
    tcase_add_test(tcase, clients_leave_the_queue);
    tcase_add_test(tcase, clients_end_their_half);
    tcase_add_test(tcase, clients_keep_half_a_connection);
    tcase_add_test(tcase, drains);
    tcase_add_test(tcase, ends_while_they_wait);
    tcase_add_test(tcase, sessions_that_have_tried_a_server);
    tcase_add_test(tcase, primaries_after_backups);
    tcase_add_loop_test(tcase, room_that_another_worker_makes, 0, 2);
}

TEST_MAIN("queue", add_tests)

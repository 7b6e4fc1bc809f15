/* SPDX-License-Identifier: BSD-2-Clause */
/* A server is not to blame for a lack of this host: no server is marked, neither by sessions nor by
 * health checks. For want of descriptors no further server is tried; for want of local ports a
 * server with free ports may do. A worker accepts only clients it has room to serve. */
#include "kit/kit.h"
#include "upstream/led.h"

#include <errno.h>

extern const fb_protocol fb_protocol_proxy;

#define GROUP "upstream u { zone u 64k; server 10.0.0.1:80 fail_timeout=1h; server 10.0.0.2:80; }"

START_TEST(sessions)
{
    fb_test *test = led_start(GROUP, "proxy_pass u;");
    fb_test_peer *client;

    fb_test_serve(test, "10.0.0.1:80", FB_TEST_ACCEPTS);
    client = fb_test_connect(test);
    test->sim->connect_error = EMFILE;
    fb_test_run(test);
    ck_assert(fb_test_is_closed(client));
    test->sim->connect_error = 0;
    led_logged(test, "upstream server temporarily disabled", 0);
    led_logged(test, "10.0.0.2", 0);
    led_connect(test, "10.0.0.2:80");
    led_connect(test, "10.0.0.1:80");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(checks)
{
    fb_test *test = led_start(GROUP, "proxy_pass u; health_check interval=1s;");

    fb_test_serve(test, "10.0.0.1:80", FB_TEST_ACCEPTS);
    fb_test_serve(test, "10.0.0.2:80", FB_TEST_ACCEPTS);
    test->sim->connect_error = EMFILE;
    fb_test_pass(test, 3000);
    test->sim->connect_error = 0;
    led_logged(test, "peer is unhealthy", 0);
    led_connect(test, "10.0.0.1:80");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void lack_ports(fb_test *test, const char *address)
{
    fb_test_server *server = fb_test_serve(test, address, FB_TEST_REFUSES);

    sim_server_answer(server->server, SIM_REFUSES, EADDRNOTAVAIL);
}

START_TEST(ports_towards_one)
{
    fb_test *test = led_start(GROUP, "proxy_pass u;");

    lack_ports(test, "10.0.0.1:80");
    for (int i = 0; i < 3; i++)
        led_connect(test, "10.0.0.2:80");
    led_logged(test, "upstream server temporarily disabled", 0);
    led_logged(test, "[crit] *1 local ports are exhausted towards 10.0.0.1:80", 1);
    led_logged(test, "[crit]", 1);
    led_logged(test, "[error] *", 1); /* every other session begins there */
    fb_test_pass(test, 60001);
    for (int i = 0; i < 3; i++)
        led_connect(test, "10.0.0.2:80");
    led_logged(test, "[crit]", 2);
    led_connect(test, "10.0.0.1:80");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(ports_towards_all)
{
    fb_test *test = led_start(GROUP, "proxy_pass u;");

    lack_ports(test, "10.0.0.1:80");
    lack_ports(test, "10.0.0.2:80");
    led_connect(test, NULL);
    ck_assert_str_eq(fb_test_access_log(test), "10.0.0.1:80, 10.0.0.2:80\n");
    led_logged(test, "no live upstreams", 0);
    led_connect(test, "10.0.0.2:80");
    led_connect(test, "10.0.0.1:80");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(ports_of_checks)
{
    fb_test *test = led_start(GROUP, "proxy_pass u; health_check interval=1s;");

    lack_ports(test, "10.0.0.1:80");
    lack_ports(test, "10.0.0.2:80");
    fb_test_pass(test, 3000);
    led_logged(test, "peer is unhealthy", 0);
    led_logged(test, "[crit] *1 local ports are exhausted towards 10.0.0.1:80", 1);
    led_connect(test, "10.0.0.1:80");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* An address without a free port towards the server is replaced, for sessions in turn. */
START_TEST(ports_of_other_addresses)
{
    fb_test *test = led_start("upstream u { zone u 64k; server 10.0.0.1:80; }",
        "proxy_pass u; proxy_bind 203.0.113.1 10.0.0.8 10.0.0.9; health_check interval=1s;");
    fb_test_server *server = fb_test_serve(test, "10.0.0.1:80", FB_TEST_ACCEPTS);

    for (int i = 0; i < 6; i++)
        led_connect(test, "10.0.0.1:80");
    led_logged(test, "bind() to 203.0.113.1:0 failed", 2);
    led_logged(test, "proxy 10.0.0.8:", 4);
    led_logged(test, "proxy 10.0.0.9:", 2);
    fb_test_pass(test, 6000);
    led_logged(test, "peer is unhealthy", 0);
    ck_assert_ptr_nonnull(fb_test_accept(server));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* ---- Slots: a client with a second slot for the server waits until both are free ---- */

static fb_test *start_small(uint32_t connections, const char *stream, const char *server)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .stream = stream,
        .server = server,
        .worker_connections = connections,
        .log_format = "$status",
    };
    fb_test *test = fb_test_start_with(&fb_protocol_proxy, &options);

    ck_assert_ptr_nonnull(test);
    return test;
}

START_TEST(the_last_slot_is_left_free)
{
    fb_test *test = start_small(3, GROUP, "proxy_pass u;");
    fb_test_peer *first = led_connect(test, "10.0.0.1:80"), *second;

    fb_test_serve(test, "10.0.0.2:80", FB_TEST_ACCEPTS);
    second = fb_test_connect(test);
    fb_test_pass(test, 2000);
    ck_assert(!fb_test_is_closed(second));
    led_logged(test, "3 worker_connections are not enough, accepting is suspended", 1);
    ck_assert_uint_eq(test->workers->worker.stream.net.counters->n[COUNTER_SLOTS], 2);
    led_close(test, first);
    led_expect(test, second, "10.0.0.2:80");
    ck_assert_str_eq(fb_test_access_log(test), "200\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(another_try_has_the_slot_of_the_first)
{
    fb_test *test = start_small(2, GROUP, "proxy_pass u;");

    fb_test_serve(test, "10.0.0.1:80", FB_TEST_REFUSES);
    led_connect(test, "10.0.0.2:80");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A client is accepted, and connected when its first bytes were looked at. */
START_TEST(a_slot_is_kept_for_a_server_that_comes_later)
{
    fb_test *test = start_small(4, GROUP, "proxy_pass u; ssl_preread on;");
    fb_test_server *server = fb_test_serve(test, "10.0.0.1:80", FB_TEST_ACCEPTS);
    fb_test_peer *clients[3];

    fb_test_serve(test, "10.0.0.2:80", FB_TEST_ACCEPTS);
    for (int i = 0; i < 3; i++) {
        clients[i] = fb_test_connect(test);
        fb_test_run(test);
    }
    for (int i = 0; i < 2; i++)
        fb_test_says(clients[i], "no TLS");
    fb_test_run(test);
    ck_assert_str_eq(fb_test_access_log(test), "");
    ck_assert_ptr_nonnull(fb_test_accept(server));
    led_close(test, clients[0]);
    fb_test_says(clients[2], "no TLS");
    fb_test_run(test);
    ck_assert_ptr_nonnull(fb_test_accept(server));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, sessions);
    tcase_add_test(tcase, checks);
    tcase_add_test(tcase, ports_towards_one);
    tcase_add_test(tcase, ports_towards_all);
    tcase_add_test(tcase, ports_of_checks);
    tcase_add_test(tcase, ports_of_other_addresses);
    tcase_add_test(tcase, the_last_slot_is_left_free);
    tcase_add_test(tcase, another_try_has_the_slot_of_the_first);
    tcase_add_test(tcase, a_slot_is_kept_for_a_server_that_comes_later);
}

TEST_MAIN("shortage", add_tests)

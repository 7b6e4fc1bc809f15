/* SPDX-License-Identifier: BSD-2-Clause */
/* A server is not to blame for what this host lacks: none is marked, neither by sessions nor by
 * health checks. For want of descriptors no other server is tried; for want of local ports another may do,
 * towards which there are some. */
#include "kit/kit.h"
#include "upstream/led.h"

#include <errno.h>

#define GROUP "upstream u { zone u 64k; server 10.0.0.1:80 fail_timeout=1h; server 10.0.0.2:80; }"

START_TEST(sessions)
{
    fb_test *test = led_start(GROUP, "proxy_pass u;");
    fb_test_peer *client;

    fb_test_serve(test, "10.0.0.1:80", FB_TEST_ACCEPTS);
    client = fb_test_connect(test);
    sim_refuse_descriptors(test->sim, EMFILE);
    fb_test_run(test);
    ck_assert(fb_test_is_closed(client));
    sim_refuse_descriptors(test->sim, 0);
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
    sim_refuse_descriptors(test->sim, EMFILE);
    fb_test_pass(test, 3000);
    sim_refuse_descriptors(test->sim, 0);
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

/* The address that has no port left towards the server has others used, for sessions in turn. */
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

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, sessions);
    tcase_add_test(tcase, checks);
    tcase_add_test(tcase, ports_towards_one);
    tcase_add_test(tcase, ports_towards_all);
    tcase_add_test(tcase, ports_of_checks);
    tcase_add_test(tcase, ports_of_other_addresses);
}

TEST_MAIN("shortage", add_tests)

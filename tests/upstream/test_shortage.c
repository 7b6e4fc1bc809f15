/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors that the worker lacks are no fault of a server: no other one is tried, and none is
 * marked, neither by sessions nor by health checks. */
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

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, sessions);
    tcase_add_test(tcase, checks);
}

TEST_MAIN("shortage", add_tests)

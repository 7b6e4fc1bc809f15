/* SPDX-License-Identifier: BSD-2-Clause */
/* A server takes a client's bytes, which tell clients apart, and nothing is answered. */
#include "upstream/led.h"

#include <stdio.h>
#include <string.h>

extern const fb_protocol fb_protocol_proxy;

fb_test *led_start(const char *stream, const char *server)
{
    const fb_test_options options = {
        .size = sizeof(options), .stream = stream, .server = server, .log_format = "$upstream_addr"
    };
    fb_test *test = fb_test_start_with(&fb_protocol_proxy, &options);

    ck_assert_ptr_nonnull(test);
    return test;
}

void led_logged(fb_test *test, const char *text, unsigned n)
{
    const char *log = fb_test_logged(test), *at = log;
    unsigned found = 0;

    while ((at = strstr(at, text)) != NULL) {
        found++;
        at += strlen(text);
    }
    if (found != n)
        ck_abort_msg("\"%s\" %u times instead of %u in the log:\n%.4000s", text, found, n, log);
}

void led_expect(fb_test *test, fb_test_peer *client, const char *address)
{
    fb_test_peer *server;

    fb_test_run(test);
    if (address == NULL) {
        ck_assert(fb_test_is_closed(client));
        return;
    }
    server = fb_test_accept(fb_test_serve(test, address, FB_TEST_ACCEPTS));
    if (server == NULL)
        ck_abort_msg("no connection to %s, log:\n%.4000s", address, fb_test_logged(test));
    fb_test_says(client, "ping");
    if (fb_test_heard(server).n != 4)
        ck_abort_msg(
            "another client's connection to %s, log:\n%.4000s", address, fb_test_logged(test));
}

fb_test_peer *led_connect(fb_test *test, const char *address)
{
    fb_test_peer *client;

    if (address != NULL)
        fb_test_serve(test, address, FB_TEST_ACCEPTS);
    client = fb_test_connect(test);
    led_expect(test, client, address);
    return client;
}

void led_close(fb_test *test, fb_test_peer *client)
{
    fb_test_reset(client);
    fb_test_run(test);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared parts of the tests of upstreams: a worker of the kit with clients led by proxy_pass to
 * simulated servers, and their fate. */
#pragma once

#include "support/test.h"

#include <forkbeard/test.h>

/* Starts a worker with the directives of stream {} and of its server. */
fb_test *led_start(const char *stream, const char *server);
/* Fails the test unless the error log has the text so many times; a text with two parts has the
 * second behind the first. */
void led_logged(fb_test *test, const char *text, unsigned n);
/* Connects a client, and expects its connection with the server of `address`; NULL: expects a
 * close. */
fb_test_peer *led_connect(fb_test *test, const char *address);
/* Expects a connected client to be, now or soon, connected with a server. */
void led_expect(fb_test *test, fb_test_peer *client, const char *address);
/* Ends a client's session. */
void led_close(fb_test *test, fb_test_peer *client);

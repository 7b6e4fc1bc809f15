/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of upstreams have in common: a worker of the kit whose clients proxy_pass leads to
 * simulated servers, and what has become of them. */
#pragma once

#include "support/test.h"

#include <forkbeard/test.h>

/* Starts a worker with these directives of stream {} and of its server. */
fb_test *led_start(const char *stream, const char *server);
/* Fails the test unless the error log has the text so many times; of a text with two parts, behind
 * each other. */
void led_logged(fb_test *test, const char *text, unsigned n);
/* Connects a client, and expects that it is connected with the server of this address; NULL: that
 * it is closed. */
fb_test_peer *led_connect(fb_test *test, const char *address);
/* Expects that a client which has connected is, or is now, connected with a server. */
void led_expect(fb_test *test, fb_test_peer *client, const char *address);
/* Ends a client's session. */
void led_close(fb_test *test, fb_test_peer *client);

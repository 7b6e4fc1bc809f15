/* SPDX-License-Identifier: BSD-2-Clause */
/* The system calls for the bytes of a proxied session. */
#include "kit/kit.h"
#include "support/test.h"

#include <forkbeard/test.h>
#include <string.h>

extern const fb_protocol fb_protocol_proxy;

#define SERVER "10.0.0.1:80"
#define MESSAGES 5
#define MESSAGE "64 bytes, which are what a message of a busy protocol often has."

struct way {
    const char *server, *stream;
};

static const struct way ways[] = {
    { "proxy_pass " SERVER ";", NULL },
    { "proxy_pass group;",
        "upstream group { zone group 64k; server " SERVER "; server 10.0.0.2:80; }" },
    { "proxy_pass " SERVER "; proxy_buffer_size 128; proxy_half_close on;", NULL },
};

/* Passes a message from one peer to the opposite, in a receive and a send. */
static void pass_message(fb_test *test, fb_test_peer *from, fb_test_peer *to)
{
    const struct sim_socket *in = from->socket, *out = to->socket;
    unsigned before[] = { in->recvs, in->sends, out->recvs, out->sends };
    fb_bytes heard;

    fb_test_says(from, MESSAGE);
    fb_test_run(test);
    heard = fb_test_heard(to);
    ck_assert_uint_eq(heard.n, strlen(MESSAGE));
    ck_assert_mem_eq(heard.p, MESSAGE, heard.n);
    fb_test_forget(to);
    ck_assert_uint_eq(in->recvs - before[0], 1);
    ck_assert_uint_eq(in->sends - before[1], 0);
    ck_assert_uint_eq(out->recvs - before[2], 0);
    ck_assert_uint_eq(out->sends - before[3], 1);
}

START_TEST(a_message_takes_a_receive_and_a_send_each_way)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = ways[_i].server,
        .stream = ways[_i].stream,
    };
    fb_test *test = fb_test_start_with(&fb_protocol_proxy, &options);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test), *peer;

    fb_test_run(test);
    peer = fb_test_accept(server);
    ck_assert_ptr_nonnull(peer);
    for (int i = 0; i < MESSAGES; i++) {
        pass_message(test, client, peer);
        pass_message(test, peer, client);
    }
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_message_takes_a_receive_and_a_send_each_way, 0, countof(ways));
}

TEST_MAIN("proxy_calls", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations with few callbacks, and operations of an older, shorter header. */
#include "sdk/scripted_conn.h"

#include <string.h>

static fb_conn *client, *server;

static int opened(fb_conn *conn, void *state)
{
    (void)state;
    client = conn;
    return 0;
}

static size_t data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    client = conn;
    return in.n;
}

static void closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)state;
    (void)reason;
    client = client == conn ? NULL : client;
}

static const fb_ops all_ops[] = {
    { .size = sizeof(fb_ops), .opened = opened },
    { .size = sizeof(fb_ops), .data = data },
    { .size = sizeof(fb_ops), .opened = opened, .closed = closed },
};
#define OPS ((int)countof(all_ops))

static const fb_directive directives[] = {
    { .name = "proto", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

/* Makes all possible events happen to a client. */
static void happen_to(fb_test *test, fb_test_peer *peer)
{
    fb_ref ref;

    fb_test_says(peer, "hello");
    fb_test_run(test);
    if (client == NULL)
        return;
    fb_timer(client, 1, 10);
    fb_set_idle(client, 0);
    fb_test_take(peer, 0);
    for (int i = 0; i < 100; i++)
        fb_write(client, "0123456789012345678901234567890123456789", 40);
    for (int i = 0; i < 2000; i++)
        fb_write(client, "0123456789012345678901234567890123456789", 40);
    scripted_settle(test);
    fb_test_take(peer, SIZE_MAX); /* writable */
    fb_test_pass(test, 100);
    ref = fb_ref_of(client);
    ck_assert_uint_ne(fb_send_message(client, ref, "x", 1), 0);
    scripted_settle(test);
    ck_assert_uint_eq(fb_test_heard(peer).n, 84000);
}

START_TEST(a_client_without)
{
    fb_protocol proto = {
        FB_PROTOCOL_HEADER,
        .name = "proto",
        FB_PROTOCOL_DIRECTIVES(directives),
        .ops = &all_ops[_i % OPS],
    };
    fb_test *test = fb_test_start(&proto, "proto;");
    fb_test_peer *peer = fb_test_connect(test), *other;

    happen_to(test, peer);
    other = fb_test_connect(test);
    fb_test_drain(test, 30000);
    fb_test_shut(peer); /* closes it */
    ck_assert(fb_test_is_closed(peer));
    if (_i >= OPS)
        fb_test_reset(other);
    scripted_finish(&test);
}
END_TEST

/* Fields behind an operations' size are not looked at. */
static const fb_ops no_ops = { .size = sizeof(fb_ops) };
static const fb_ops shortest_ops = { .size = sizeof(size_t), .opened = (void *)1 };

START_TEST(a_server_without)
{
    fb_test *test = scripted_start();
    struct scripted_conn a = { 0 };
    fb_test_peer *peer = scripted_conn_open(test, &a);
    const fb_ops *ops = _i % 2 ? &no_ops : &shortest_ops;
    fb_test_server *there = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);

    server = fb_connect(a.conn, fb_make_target(a.conn, SERVER), ops, NULL);
    ck_assert_ptr_nonnull(server);
    scripted_settle(test);
    peer = fb_test_accept(there);
    client = server;
    happen_to(test, peer);
    if (_i / 2 == 0) {
        fb_keep(server, 1000);
        scripted_settle(test);
        server = fb_connect(a.conn, fb_make_target(a.conn, SERVER), ops, NULL);
        ck_assert(fb_is_reused(server));
        scripted_settle(test);
    }
    fb_test_drain(test, 30000);
    fb_test_shut(peer);
    ck_assert(fb_test_is_closed(peer));
    server = fb_connect(a.conn, fb_make_target(a.conn, "10.0.0.9:9"), ops, NULL); /* refused */
    scripted_settle(test);
    scripted_finish(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_client_without, 0, 2 * OPS);
    tcase_add_loop_test(tcase, a_server_without, 0, 4);
}

TEST_MAIN("sdk_no_callbacks", add_tests)

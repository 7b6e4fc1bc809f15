/* SPDX-License-Identifier: BSD-2-Clause */
/* The proxy, as a client and its server see it. */
#include "support/test.h"

#include <forkbeard/test.h>
#include <stdio.h>
#include <string.h>

extern const fb_protocol fb_protocol_proxy;

#define LOG_FORMAT                                                                                 \
    "$status $bytes_received $bytes_sent $upstream_addr $upstream_bytes_received "                 \
    "$upstream_bytes_sent $upstream_connect_time $upstream_session_time"
#define SERVER "10.0.0.1:80"

static fb_test *start(const char *server, const char *stream, const char *listen)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = server,
        .stream = stream,
        .listen = listen,
        .log_format = LOG_FORMAT,
    };
    fb_test *test = fb_test_start_with(&fb_protocol_proxy, &options);

    ck_assert_ptr_nonnull(test);
    return test;
}

static void expect_logged(fb_test *test, const char *text)
{
    ck_assert_msg(strstr(fb_test_logged(test), text) != NULL, "%s", fb_test_logged(test));
}

static void expect_heard(fb_test_peer *peer, const char *text)
{
    fb_bytes heard = fb_test_heard(peer);

    ck_assert_uint_eq(heard.n, strlen(text));
    ck_assert_mem_eq(heard.p, text, heard.n);
    fb_test_forget(peer);
}

START_TEST(bytes_move_both_ways)
{
    static const fb_test_step script[] = {
        FB_TEST_SAY("early"),
        FB_TEST_SERVER(1, SERVER),
        FB_TEST_EXPECT("early"),
        FB_TEST_SAY("reply"),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT("reply"),
        FB_TEST_SAY(" and more"),
        FB_TEST_PEER(1),
        FB_TEST_EXPECT(" and more"),
        FB_TEST_SHUT(),
        FB_TEST_PEER(0),
        FB_TEST_EXPECT_END(),
        FB_TEST_SHUT(),
        FB_TEST_EXPECT_CLOSED(),
        FB_TEST_EXPECT_LOG("200 14 5 10.0.0.1:80 5 14 0.000 0.000"),
    };
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "proxy_pass " SERVER ";",
        .excuse = "",
        .log_format = LOG_FORMAT,
    };

    ck_assert_int_eq(
        fb_test_converse_with(&fb_protocol_proxy, &options, FB_TEST_SCRIPT(script)), 0);
}
END_TEST

START_TEST(a_server_that_refuses_ends_the_session)
{
    fb_test *test = start("proxy_pass " SERVER ";", NULL, NULL);
    fb_test_peer *client;

    fb_test_serve(test, SERVER, FB_TEST_REFUSES);
    client = fb_test_connect(test);
    fb_test_says(client, "early");
    expect_heard(client, "");
    ck_assert_int_eq(fb_test_has_ended(client), 1);
    ck_assert_int_eq(fb_test_was_reset(client), 0);
    fb_test_shut(client);
    fb_test_run(test);
    ck_assert_str_eq(fb_test_access_log(test), "502 0 0 10.0.0.1:80 0 0 - 0.000\n");
    expect_logged(test, "[error] *1 connect() failed (111: Connection refused) while connecting to "
                        "upstream, client: 192.0.2.1, server: 192.0.2.80:80, upstream: "
                        "\"10.0.0.1:80\", bytes from/to client:0/0, bytes from/to upstream:0/0\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_silent_server_has_a_time)
{
    fb_test *test = start(
        "proxy_pass " SERVER "; proxy_connect_timeout 90s; first_byte_timeout 10s;", NULL, NULL);
    fb_test_peer *client;

    fb_test_serve(test, SERVER, FB_TEST_SILENT);
    client = fb_test_connect(test);
    fb_test_pass(test, 89999);
    ck_assert_int_eq(fb_test_has_ended(client), 0);
    fb_test_pass(test, 1);
    ck_assert_int_eq(fb_test_is_closed(client), 1);
    ck_assert_str_eq(fb_test_access_log(test), "502 0 0 10.0.0.1:80 0 0 - 90.000\n");
    expect_logged(test,
        "[error] *1 upstream timed out (110: Connection timed out) while connecting "
        "to upstream, client: 192.0.2.1, server: 192.0.2.80:80, upstream: "
        "\"10.0.0.1:80\", bytes from/to client:0/0, bytes from/to upstream:0/0\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_client_that_breaks_its_connection_waits_for_no_server)
{
    fb_test *test = start("proxy_pass " SERVER ";", NULL, NULL);
    fb_test_peer *client;

    fb_test_serve(test, SERVER, FB_TEST_SILENT);
    client = fb_test_connect(test);
    fb_test_run(test);
    fb_test_reset(client);
    fb_test_pass(test, 1000);
    ck_assert_ptr_nonnull(strstr(fb_test_access_log(test), "200 0 0 10.0.0.1:80 0 0 - 0."));
    expect_logged(test, "reason: the client broke the connection, client: 192.0.2.1");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_session_without_bytes_has_a_time)
{
    fb_test *test = start("proxy_pass " SERVER "; proxy_timeout 5s;", NULL, NULL);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test), *peer;

    fb_test_says(client, "hi");
    peer = fb_test_accept(server);
    expect_heard(peer, "hi");
    fb_test_pass(test, 5000);
    ck_assert_int_eq(fb_test_is_closed(client), 1);
    ck_assert_int_eq(fb_test_is_closed(peer), 1);
    ck_assert_str_eq(fb_test_access_log(test), "200 2 0 10.0.0.1:80 0 2 0.000 5.000\n");
    expect_logged(test,
        "[info] *1 connection timed out (110: Connection timed out) while proxying "
        "connection, client: 192.0.2.1, server: 192.0.2.80:80, upstream: \"10.0.0.1:80\", "
        "bytes from/to client:2/0, bytes from/to upstream:0/2\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(the_log_tells_of_the_connection_and_who_ended_it)
{
    fb_test *test = start("proxy_pass " SERVER ";", NULL, NULL);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test);

    fb_test_says(client, "hi");
    fb_test_run(test);
    fb_test_reset(fb_test_accept(server));
    fb_test_run(test);
    ck_assert_int_eq(fb_test_was_reset(client), 1);
    expect_logged(test, "[info] *1 proxy 192.0.2.");
    expect_logged(test, " connected to 10.0.0.1:80\n");
    expect_logged(test, "[info] *1 upstream disconnected, bytes from/to client:2/0, bytes from/to "
                        "upstream:0/2, session time: 0.000, reason: the other connection of its "
                        "pipe broke, client: 192.0.2.1, server: 192.0.2.80:80\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* ---- PROXY headers ---- */

static void expect_header(
    const char *directive, const char *listen, const char *said, const char *heard, size_t n)
{
    fb_test *test = start(directive, "set_real_ip_from 192.0.2.1;", listen);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test);
    fb_bytes bytes;

    fb_test_says(client, said);
    bytes = fb_test_heard(fb_test_accept(server));
    ck_assert_uint_eq(bytes.n, n);
    ck_assert_mem_eq(bytes.p, heard, n);
    ck_assert_int_eq(fb_test_end(&test), 0);
}

#define HEARD(text) (text), sizeof(text) - 1

START_TEST(the_server_is_told_of_the_client)
{
    static const char v1[] = "proxy_pass " SERVER "; proxy_protocol on;";
    static const char v2[] = "proxy_pass " SERVER "; proxy_protocol on version=2;";

    expect_header(v1, "proxy_protocol", "PROXY TCP4 10.1.2.3 10.9.9.9 56324 443\r\nhi",
        HEARD("PROXY TCP4 10.1.2.3 192.0.2.80 56324 80\r\nhi"));
    expect_header(v1, "proxy_protocol", "PROXY TCP6 2001:db8::7 2001:db8::8 1 2\r\nhi",
        HEARD("PROXY TCP6 2001:db8::7 ::ffff:192.0.2.80 1 80\r\nhi"));
    expect_header(v2, "proxy_protocol", "PROXY TCP4 10.1.2.3 10.9.9.9 56324 443\r\nhi",
        HEARD("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x0a\x01\x02\x03\xc0\0\x02\x50\xdc\x04\0\x50hi"));
    expect_header(v2, "proxy_protocol", "PROXY TCP6 2001:db8::7 2001:db8::8 1 2\r\nhi",
        HEARD("\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07"
              "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\x02\x50\0\x01\0\x50hi"));
    expect_header("proxy_pass " SERVER "; proxy_protocol off;", NULL, "hi", HEARD("hi"));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, bytes_move_both_ways);
    tcase_add_test(tcase, a_server_that_refuses_ends_the_session);
    tcase_add_test(tcase, a_silent_server_has_a_time);
    tcase_add_test(tcase, a_client_that_breaks_its_connection_waits_for_no_server);
    tcase_add_test(tcase, a_session_without_bytes_has_a_time);
    tcase_add_test(tcase, the_log_tells_of_the_connection_and_who_ended_it);
    tcase_add_test(tcase, the_server_is_told_of_the_client);
}

TEST_MAIN("proxy", add_tests)

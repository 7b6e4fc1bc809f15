/* SPDX-License-Identifier: BSD-2-Clause */
/* The proxy, from the client's and the server's side. */
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
    ck_assert_int_eq(fb_test_was_reset(client), 0);
    expect_logged(test,
        "[error] *1 recv() failed (104: Connection reset by peer) while proxying and "
        "reading from upstream, ");
    expect_logged(test, "[info] *1 proxy 192.0.2.");
    expect_logged(test, " connected to 10.0.0.1:80\n");
    expect_logged(test,
        "[info] *1 upstream disconnected, bytes from/to client:2/0, bytes from/to "
        "upstream:0/2, session time: 0.000, reason: the server broke the connection, "
        "client: 192.0.2.1, server: 192.0.2.80:80\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(the_log_says_where_bytes_were_lost)
{
    fb_test *test = start("proxy_pass " SERVER ";", NULL, NULL);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test);

    fb_test_accept(server);
    fb_test_run(test);
    fb_test_reset(client);
    fb_test_run(test);
    expect_logged(test,
        "[info] *1 recv() failed (104: Connection reset by peer) while proxying and "
        "reading from client, ");
    expect_logged(test, "client disconnected, bytes from/to client:0/0, ");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* ---- Ends of halves ---- */

/* Bytes sent by a client before its end arrive, and are answered if configured. */
START_TEST(the_end_of_a_half_ends_all_or_half)
{
    fb_test *test =
        start(_i == 0 ? "proxy_pass " SERVER ";" : "proxy_pass " SERVER "; proxy_half_close on;",
            NULL, NULL);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test), *peer;

    fb_test_says(client, "last");
    fb_test_shut(client);
    peer = fb_test_accept(server);
    expect_heard(peer, "last");
    ck_assert_int_eq(fb_test_has_ended(peer), 1);
    ck_assert_int_eq(fb_test_is_closed(peer), _i == 0);
    if (_i == 1)
        fb_test_says(peer, "reply");
    fb_test_shut(peer);
    expect_heard(client, _i == 0 ? "" : "reply");
    ck_assert_int_eq(fb_test_is_closed(client), 1);
    expect_logged(test, "client disconnected");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(the_server_may_end_first)
{
    fb_test *test = start("proxy_pass " SERVER ";", NULL, NULL);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test), *peer = fb_test_accept(server);

    fb_test_says(peer, "bye");
    fb_test_shut(peer);
    expect_heard(client, "bye");
    ck_assert_int_eq(fb_test_has_ended(client), 1);
    fb_test_shut(client);
    fb_test_run(test);
    expect_logged(test, "upstream disconnected, bytes from/to client:0/3, bytes from/to "
                        "upstream:3/0, ");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A draining worker lets sessions go on until worker_shutdown_timeout. */
START_TEST(a_drain_waits_for_sessions)
{
    fb_test *test = start("proxy_pass " SERVER ";", NULL, NULL);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test), *peer = fb_test_accept(server);

    fb_test_drain(test, 5000);
    fb_test_says(client, "still");
    expect_heard(peer, "still");
    fb_test_pass(test, 4999);
    ck_assert_int_eq(fb_test_is_closed(client), 0);
    fb_test_pass(test, 1);
    ck_assert_int_eq(fb_test_is_closed(client), 1);
    ck_assert_int_eq(fb_test_is_closed(peer), 1);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* ---- The next server ---- */

#define GROUP                                                                                      \
    "upstream group { server 10.0.0.1:80 fail_timeout=0; server 10.0.0.2:80 fail_timeout=0; "      \
    "server 10.0.0.3:80 fail_timeout=0; }"

START_TEST(the_next_server_is_tried)
{
    static const struct {
        const char *server, *line;
    } cases[] = {
        { "", "200 5 0 10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80 0, 0, 0 0, 0, 5 -, -, 0.000 " },
        { "proxy_next_upstream_tries 3;", "200 5 0 10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80 " },
        { "proxy_next_upstream_tries 2;", "502 0 0 10.0.0.1:80, 10.0.0.2:80 0, 0 0, 0 -, - " },
        { "proxy_next_upstream off;", "502 0 0 10.0.0.1:80 0 0 - " },
    };
    char server[128];
    const char *log;
    fb_test *test;
    fb_test_peer *client, *peer;
    fb_test_server *third;

    snprintf(server, sizeof(server), "proxy_pass group; %s", cases[_i].server);
    test = start(server, GROUP, NULL);
    third = fb_test_serve(test, "10.0.0.3:80", FB_TEST_ACCEPTS);
    client = fb_test_connect(test);
    fb_test_says(client, "early");
    fb_test_run(test);
    peer = fb_test_accept(third);
    ck_assert_int_eq(peer != NULL, cases[_i].line[0] == '2');
    if (peer != NULL) {
        expect_heard(peer, "early");
        fb_test_shut(peer);
    }
    fb_test_shut(client);
    fb_test_run(test);
    log = fb_test_access_log(test);
    ck_assert_msg(strncmp(log, cases[_i].line, strlen(cases[_i].line)) == 0, "%s", log);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(tries_have_a_time_together)
{
    fb_test *test = start("proxy_pass group; proxy_connect_timeout 4s; "
                          "proxy_next_upstream_timeout 6s;",
        GROUP, NULL);

    fb_test_serve(test, "10.0.0.1:80", FB_TEST_SILENT);
    fb_test_serve(test, "10.0.0.2:80", FB_TEST_SILENT);
    fb_test_serve(test, "10.0.0.3:80", FB_TEST_SILENT);
    fb_test_connect(test);
    fb_test_pass(test, 20000);
    ck_assert_str_eq(
        fb_test_access_log(test), "502 0 0 10.0.0.1:80, 10.0.0.2:80 0, 0 0, 0 -, - 4.000, 4.000\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* ---- Addresses to connect from, and rates ---- */

START_TEST(servers_are_connected_from_an_address)
{
    static const struct {
        const char *bind, *line;
    } cases[] = {
        { "proxy_bind 10.0.0.9;", "proxy 10.0.0.9:" },
        { "proxy_bind 10.0.0.9:7777;", "proxy 10.0.0.9:7777 connected to" },
        { "proxy_bind $remote_addr;", "proxy 192.0.2.1:" },
        { "proxy_bind $remote_addr:$remote_port;", "proxy 192.0.2.1:40001 connected to" },
        { "proxy_bind $remote_addr transparent;", "proxy 192.0.2.1:" },
        { "proxy_bind off;", "proxy 192.0.2." },
        { "proxy_bind none$remote_port;", "[error] *1 invalid local address \"none40001\" while" },
        { "proxy_bind 10.0.0.9:99999$server_port;", "invalid local address \"10.0.0.9:9999980\"" },
    };
    char server[128];
    fb_test *test;

    snprintf(server, sizeof(server), "proxy_pass " SERVER "; %s", cases[_i].bind);
    test = start(server, NULL, NULL);
    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_connect(test);
    fb_test_run(test);
    expect_logged(test, cases[_i].line);
    expect_logged(test, " connected to 10.0.0.1:80\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* The fault is ours: no server is marked. */
START_TEST(an_address_that_is_not_here_is_an_error)
{
    fb_test *test = start("proxy_pass group; proxy_bind 203.0.113.1;", GROUP, NULL);

    fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_connect(test);
    fb_test_run(test);
    ck_assert_str_eq(fb_test_access_log(test), "500 0 0 10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80 0, "
                                               "0, 0 0, 0, 0 -, -, - 0.000, 0.000, 0.000\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A check's address is the sessions', or every server would be unhealthy. */
START_TEST(checks_connect_from_an_address_of_others)
{
    fb_test *test = start("proxy_pass one; proxy_bind 203.0.113.1 transparent; health_check;",
        "upstream one { zone one 32k; server " SERVER "; }", NULL);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);

    fb_test_pass(test, 6000);
    ck_assert_ptr_nonnull(fb_test_accept(server));
    ck_assert_ptr_null(strstr(fb_test_logged(test), "unhealthy"));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Sends more than two seconds' bytes at once; returns how many have arrived after `ms`. */
static size_t arrived(const char *directives, bool upload, uint64_t ms, const char *line)
{
    static const char bytes[3000];
    fb_test *test = start(directives, NULL, NULL);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test), *peer = fb_test_accept(server);
    size_t n;

    fb_test_say(upload ? client : peer, bytes, sizeof(bytes));
    fb_test_pass(test, ms);
    n = fb_test_heard(upload ? peer : client).n;
    if (line != NULL)
        expect_logged(test, line);
    ck_assert_int_eq(fb_test_end(&test), 0);
    return n;
}

#define RATED(directive) "proxy_pass " SERVER "; " directive

START_TEST(rates_are_kept)
{
    ck_assert_uint_eq(arrived(RATED("proxy_upload_rate 1k;"), true, 500, NULL), 1024);
    ck_assert_uint_eq(arrived(RATED("proxy_upload_rate 1k;"), false, 500, NULL), 3000);
    ck_assert_uint_eq(arrived(RATED("proxy_download_rate 1K;"), false, 1500, NULL), 2048);
    ck_assert_uint_eq(
        arrived(RATED("proxy_download_rate ${server_port}0;"), false, 500, NULL), 800);
    ck_assert_uint_eq(arrived(RATED("proxy_download_rate 0;"), false, 500, NULL), 3000);
    ck_assert_uint_eq(arrived(RATED("proxy_download_rate x$server_port;"), false, 500,
                          "[error] *1 invalid size \"x80\" while connecting to upstream, client"),
        3000);
}
END_TEST

/* ---- The configuration ---- */

START_TEST(mistakes_are_refused)
{
    static const char *const wrong[] = { "proxy_bind localhost;", "proxy_bind 10.0.0.1:0;",
        "proxy_bind [::1];", "proxy_bind ::1:x;", "proxy_bind [10.0.0.1]:80;",
        "proxy_bind unix:/a;", "proxy_bind off transparent;", "proxy_bind 10.0.0.1 opaque;",
        "proxy_bind $nothing;", "proxy_bind 10.0.0.1:65536;", "proxy_bind 10.0.0.1 off;",
        "proxy_bind transparent;", "proxy_bind 10.0.0.1 transparent 10.0.0.2;",
        "proxy_bind 10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6 10.0.0.7 10.0.0.8 "
        "10.0.0.9 "
        "10.0.0.10 10.0.0.11 10.0.0.12 10.0.0.13 10.0.0.14 10.0.0.15 10.0.0.16;",
        "proxy_upload_rate off;", "proxy_upload_rate 1g;", "proxy_upload_rate k;",
        "proxy_upload_rate -1;", "proxy_upload_rate 9223372036854775808;",
        "proxy_upload_rate 9007199254740992k;", "proxy_download_rate $nothing;",
        "proxy_protocol yes;", "proxy_protocol on version=3;", "proxy_protocol v2 version=1;",
        "proxy_protocol v1;", "proxy_protocol on certificate;",
        "proxy_protocol on version=2 certificate more;" };
    char server[256];

    snprintf(server, sizeof(server), "proxy_pass " SERVER "; %s", wrong[_i]);
    ck_assert_ptr_null(fb_test_start(&fb_protocol_proxy, server));
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
    expect_header("proxy_pass " SERVER "; proxy_protocol V2 certificate;", "proxy_protocol",
        "PROXY TCP4 10.1.2.3 10.9.9.9 56324 443\r\nhi",
        HEARD("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x0a\x01\x02\x03\xc0\0\x02\x50\xdc\x04\0\x50hi"));
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
    tcase_add_test(tcase, the_log_says_where_bytes_were_lost);
    tcase_add_loop_test(tcase, the_end_of_a_half_ends_all_or_half, 0, 2);
    tcase_add_test(tcase, the_server_may_end_first);
    tcase_add_test(tcase, a_drain_waits_for_sessions);
    tcase_add_loop_test(tcase, the_next_server_is_tried, 0, 4);
    tcase_add_test(tcase, tries_have_a_time_together);
    tcase_add_loop_test(tcase, servers_are_connected_from_an_address, 0, 8);
    tcase_add_test(tcase, an_address_that_is_not_here_is_an_error);
    tcase_add_test(tcase, checks_connect_from_an_address_of_others);
    tcase_add_test(tcase, rates_are_kept);
    tcase_add_loop_test(tcase, mistakes_are_refused, 0, 23);
    tcase_add_test(tcase, the_server_is_told_of_the_client);
}

TEST_MAIN("proxy", add_tests)

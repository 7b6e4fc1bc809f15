/* SPDX-License-Identifier: BSD-2-Clause */
/* proxy_pass with variables: the allowed texts, the target of a name, and no memory left. */
#include "features/hello.h"
#include "upstream/led.h"

#include <stdio.h>
#include <string.h>

extern const fb_protocol fb_protocol_proxy;

static fb_test *start_with(const char *to, const char *log_format)
{
    char server[512];
    const fb_test_options options = {
        .size = sizeof(options), .server = server, .log_format = log_format
    };

    snprintf(server, sizeof(server), "set $to \"%s\"; proxy_pass $to;", to);
    return fb_test_start_with(&fb_protocol_proxy, &options);
}

static fb_test *start(const char *to)
{
    return start_with(to, "$status $upstream_addr");
}

static void expect_logged(fb_test *test, const char *text)
{
    const char *log = fb_test_logged(test);

    if (strstr(log, text) == NULL)
        ck_abort_msg("no \"%s\" in the log:\n%.4000s", text, log);
}

static void expect_session(fb_test *test, const char *line)
{
    fb_test_run(test);
    ck_assert_str_eq(fb_test_access_log(test), line);
}

/* Expects the server at `address` to serve a client. */
static void serve(fb_test *test, fb_test_peer *client, const char *address)
{
    fb_test_peer *server = fb_test_accept(fb_test_serve(test, address, FB_TEST_ACCEPTS));

    ck_assert_ptr_nonnull(server);
    fb_test_says(client, "ping");
    ck_assert_uint_eq(fb_test_heard(server).n, 4);
    fb_test_reset(client);
    fb_test_run(test);
}

static const struct {
    const char *text, *wrong;
} invalid[] = {
    { "", "no host in upstream \"\"" },
    { ":80", "no host in upstream \":80\"" },
    { "a.test", "no port in upstream \"a.test\"" },
    { "10.0.0.1", "no port in upstream \"10.0.0.1\"" },
    { "[::1]", "no port in upstream \"[::1]\"" },
    { "a.test:", "invalid port in upstream \"a.test:\"" },
    { "a.test:0", "invalid port in upstream \"a.test:0\"" },
    { "a.test:65536", "invalid port in upstream \"a.test:65536\"" },
    { "a.test:80x", "invalid port in upstream \"a.test:80x\"" },
    { "1::2:80", "invalid port in upstream \"1::2:80\"" },
    { "a.test/b:80", "invalid host in upstream \"a.test/b:80\"" },
    { "[::1:80", "in upstream \"[::1:80\"" },
    { "[x]:80", "invalid IPv6 address in upstream \"[x]:80\"" },
    { "unix:", "no path in the unix domain socket in upstream \"unix:\"" },
    { "a..b:80", "a..b could not be resolved: the text is no name of a host" },
    { "a.test:80", "a.test could not be resolved: the name does not exist" },
};

START_TEST(texts_that_are_no_address)
{
    fb_test *test = start(invalid[_i].text);
    fb_test_peer *client = fb_test_connect(test);

    expect_session(test, "500 -\n");
    ck_assert(fb_test_is_closed(client));
    expect_logged(test, invalid[_i].wrong);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static const char *const addresses[] = { "10.0.0.1:80", "[2001:db8::1]:80", "unix:/socket" };

START_TEST(texts_that_are_addresses)
{
    fb_test *test = start(addresses[_i]);
    fb_test_peer *client;
    char line[128];

    fb_test_serve(test, addresses[_i], FB_TEST_ACCEPTS);
    client = fb_test_connect(test);
    fb_test_run(test);
    serve(test, client, addresses[_i]);
    snprintf(line, sizeof(line), "200 %s\n", addresses[_i]);
    expect_session(test, line);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_name_is_resolved)
{
    fb_test *test = start("a.test:80");
    fb_test_peer *client;

    fb_test_name(test, "a.test 60 A 10.0.0.1");
    fb_test_serve(test, "10.0.0.1:80", FB_TEST_ACCEPTS);
    client = fb_test_connect(test);
    fb_test_run(test);
    serve(test, client, "10.0.0.1:80");
    expect_session(test, "200 10.0.0.1:80\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(names_that_nobody_answers)
{
    fb_test *test = start_with(
        "a.test:80", "$session_end $upstream_name $upstream_name_time $upstream_queue_time");
    fb_test_peer *client;

    fb_test_names(test, FB_TEST_SILENT);
    client = fb_test_connect(test);
    fb_test_pass(test, 29000);
    ck_assert(!fb_test_is_closed(client));
    fb_test_pass(test, 1100);
    ck_assert(fb_test_is_closed(client));
    expect_logged(test, "a.test could not be resolved: no server has answered");
    expect_session(test, "unresolved a.test:80 30.000 -\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* The session ends while its name is asked for, and then the worker does. */
START_TEST(clients_that_do_not_wait)
{
    fb_test *test = start("a.test:80");
    fb_test_peer *client;

    fb_test_names(test, FB_TEST_SILENT);
    client = fb_test_connect(test);
    fb_test_connect(test);
    fb_test_run(test);
    fb_test_reset(client);
    fb_test_run(test);
    fb_test_pass(test, 1000);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A text matches the name of a group in any case of letters, and no name with the same
 * beginning. */
START_TEST(groups_are_found_by_name)
{
    static const struct {
        const char *text, *address;
    } names[] = {
        { "Group_1.TEST", "10.0.0.1:80" }, { "group_10.test", "10.0.0.10:80" },
        { "GROUP_200.test", "10.0.0.200:80" }, { "group_1.test:80", NULL }, { "group_1.tes", NULL },
        { "10.0.0.201:80", "10.0.0.201:80" }, /* the text names a separate group */
    };
    char stream[200 * 64], server[128];
    size_t n = 0;
    fb_test *test;

    for (int i = 1; i <= 200; i++)
        n += (size_t)snprintf(stream + n, sizeof(stream) - n,
            "upstream grouP_%d.test { server 10.0.0.%d:80; }", i, i);
    snprintf(server, sizeof(server), "set $to %s; proxy_pass $to;", names[_i].text);
    test = led_start(stream, server);
    led_connect(test, names[_i].address);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Text that a client has said names no unix socket, unless the configuration begins the name. */
static const struct {
    const char *stream, *to, *said, *wrong;
} sockets[] = {
    { "", "$ssl_preread_server_name", "unix:/socket",
        "the unix domain socket is not named by the configuration in upstream \"unix:/socket\"" },
    { "", "$ssl_preread_server_name:80", "unix:/so", "in upstream \"unix:/so:80\"" },
    { "", "un$ssl_preread_server_name", "ix:/socket", "in upstream \"unix:/socket\"" },
    { "map $ssl_preread_server_name $to { default $ssl_preread_server_name; }", "$to",
        "unix:/socket", "in upstream \"unix:/socket\"" },
    { "map $ssl_preread_server_name $to { ~^x(?<rest>.*) $rest; }", "$to", "xunix:/socket",
        "in upstream \"unix:/socket\"" },
    { "", "unix:$ssl_preread_server_name", "/socket", NULL },
    { "map $ssl_preread_server_name $to { unix:/socket unix:/socket; }", "$to", "unix:/socket",
        NULL },
    { "map $ssl_preread_server_name $to { ~^(?<name>.*)[.]test unix:/$name; }", "$to",
        "socket.test", NULL },
    { "split_clients $ssl_preread_server_name $to { * unix:/socket; }", "$to", "x", NULL },
};

START_TEST(clients_name_no_unix_sockets)
{
    char server[128], extension[64] = "\0\0";
    uint8_t n = (uint8_t)strlen(sockets[_i].said);
    fb_test_peer *client;
    struct hello hello;
    fb_test *test;

    snprintf(server, sizeof(server), "ssl_preread on; proxy_pass %s;", sockets[_i].to);
    test = led_start(sockets[_i].stream, server);
    fb_test_serve(test, "unix:/socket", FB_TEST_ACCEPTS);
    memcpy(extension + 2, (uint8_t[]) { 0, n + 5, 0, n + 3, 0, 0, n }, 7);
    memcpy(extension + 9, sockets[_i].said, n);
    hello = hello_of(extension, 9u + n);
    client = fb_test_connect(test);
    fb_test_say(client, hello.p, hello.n);
    fb_test_run(test);
    ck_assert_int_eq(fb_test_is_closed(client), sockets[_i].wrong != NULL);
    led_logged(test, "configuration", sockets[_i].wrong != NULL);
    if (sockets[_i].wrong != NULL)
        led_logged(test, sockets[_i].wrong, 1);
    led_close(test, client);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, texts_that_are_no_address, 0, sizeof(invalid) / sizeof(*invalid));
    tcase_add_loop_test(tcase, texts_that_are_addresses, 0, sizeof(addresses) / sizeof(*addresses));
    tcase_add_test(tcase, a_name_is_resolved);
    tcase_add_test(tcase, names_that_nobody_answers);
    tcase_add_loop_test(tcase, groups_are_found_by_name, 0, 6);
    tcase_add_test(tcase, clients_that_do_not_wait);
    tcase_add_loop_test(tcase, clients_name_no_unix_sockets, 0, sizeof(sockets) / sizeof(*sockets));
}

TEST_MAIN("places", add_tests)

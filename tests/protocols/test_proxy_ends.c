/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends of proxied sessions: the bytes at both sides, and the access log's line. */
#include "base/compiler.h"
#include "support/test.h"

#include <forkbeard/test.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const fb_protocol fb_protocol_proxy;

#define LOG_FORMAT "$status $bytes_received $bytes_sent"
#define SERVER "10.0.0.1:80"

static fb_test *start(const char *server)
{
    const fb_test_options options = {
        .size = sizeof(options), .server = server, .log_format = LOG_FORMAT
    };
    fb_test *test = fb_test_start_with(&fb_protocol_proxy, &options);

    ck_assert_ptr_nonnull(test);
    return test;
}

static void expect_heard(fb_test_peer *peer, const char *text)
{
    fb_bytes heard = fb_test_heard(peer);

    ck_assert_uint_eq(heard.n, strlen(text));
    ck_assert_mem_eq(heard.p, text, heard.n);
    fb_test_forget(peer);
}

START_TEST(a_reset_takes_nothing_that_had_come_before)
{
    bool resets = _i == 1;
    fb_test *test =
        start(resets ? "proxy_pass " SERVER "; proxy_reset on;" : "proxy_pass " SERVER ";");
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test), *peer;

    fb_test_says(client, "GET");
    peer = fb_test_accept(server);
    expect_heard(peer, "GET");
    fb_test_take(client, 0);
    fb_test_says(peer, "a reply ");
    fb_test_run(test); /* the client does not take it: the server is not read now */
    fb_test_says(peer, "of two pieces");
    fb_test_reset(peer);
    fb_test_says(client, "QUIT"); /* sending finds the reset */
    fb_test_run(test);
    fb_test_take(client, SIZE_MAX);
    expect_heard(client, "a reply of two pieces");
    ck_assert_int_eq(fb_test_was_reset(client), resets);
    ck_assert_str_eq(fb_test_access_log(test), "200 7 21\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* ---- $session_end ---- */

struct scene {
    fb_test *test;
    fb_test_server *server;
    fb_test_peer *client, *peer; /* peer: the client's connection at the server */
};

static void serve(struct scene *scene)
{
    fb_test_says(scene->client, "hi");
    scene->peer = fb_test_accept(scene->server);
    ck_assert_ptr_nonnull(scene->peer);
    expect_heard(scene->peer, "hi");
}

static void end_client(struct scene *scene)
{
    serve(scene);
    fb_test_shut(scene->client);
}

static void reset_client(struct scene *scene)
{
    serve(scene);
    fb_test_reset(scene->client);
}

static void end_server(struct scene *scene)
{
    serve(scene);
    fb_test_shut(scene->peer);
}

static void reset_server(struct scene *scene)
{
    serve(scene);
    fb_test_reset(scene->peer);
}

/* The server's end comes behind bytes taken later by the client. */
static void end_server_early(struct scene *scene)
{
    serve(scene);
    fb_test_take(scene->client, 0);
    fb_test_says(scene->peer, "bye");
    fb_test_shut(scene->peer);
    fb_test_run(scene->test);
    fb_test_take(scene->client, SIZE_MAX);
}

static void wait_long(struct scene *scene)
{
    fb_test_pass(scene->test, 20000);
}

static void serve_long(struct scene *scene)
{
    serve(scene);
    wait_long(scene);
}

static void end_worker(struct scene *scene)
{
    serve(scene);
    fb_test_drain(scene->test, 1000);
    fb_test_pass(scene->test, 3000);
}

/* Connects a client more than a limit allows. */
static void connect_another(struct scene *scene)
{
    serve(scene);
    fb_test_connect(scene->test);
}

static void say_no_header(struct scene *scene)
{
    fb_test_says(scene->client, "hello there, this is no header\r\n");
}

static void nothing(struct scene *scene)
{
    (void)scene;
}

#define GROUP "upstream group { server " SERVER "; } "

static const struct {
    const char *server, *stream, *listen;
    fb_test_reply reply; /* the server's to a connect */
    void (*end)(struct scene *scene);
    const char *logged;
} ends[] = {
    { "proxy_pass " SERVER ";", NULL, NULL, FB_TEST_ACCEPTS, end_client, "client_eof" },
    { "proxy_pass " SERVER "; proxy_half_close on;", NULL, NULL, FB_TEST_ACCEPTS, reset_client,
        "client_reset" },
    { "proxy_pass " SERVER ";", NULL, NULL, FB_TEST_ACCEPTS, end_server, "upstream_eof" },
    { "proxy_pass " SERVER ";", NULL, NULL, FB_TEST_ACCEPTS, end_server_early, "upstream_eof" },
    { "proxy_pass " SERVER ";", NULL, NULL, FB_TEST_ACCEPTS, reset_server, "upstream_reset" },
    { "proxy_pass " SERVER "; proxy_reset on;", NULL, NULL, FB_TEST_ACCEPTS, reset_server,
        "upstream_reset" },
    { "proxy_pass group;", GROUP, NULL, FB_TEST_REFUSES, nothing, "connect_refused" },
    { "proxy_pass group; proxy_connect_timeout 5s;", GROUP, NULL, FB_TEST_SILENT, wait_long,
        "connect_timeout" },
    { "proxy_pass group;", "upstream group { server 10.0.0.2:80; server " SERVER " backup; } ",
        NULL, FB_TEST_ACCEPTS, end_server, "upstream_eof" },
    { "proxy_pass group; proxy_timeout 5s;", GROUP, NULL, FB_TEST_ACCEPTS, serve_long, "timeout" },
    { "proxy_pass group; session_lifetime 5s jitter=0 grace=1s;", GROUP, NULL, FB_TEST_ACCEPTS,
        serve_long, "lifetime" },
    { "proxy_pass group;", "upstream group { server " SERVER " down; } ", NULL, FB_TEST_ACCEPTS,
        nothing, "no_upstream" },
    { "proxy_pass $hostname;", NULL, NULL, FB_TEST_ACCEPTS, nothing, "no_upstream" },
    { "proxy_pass group; deny all;", GROUP, NULL, FB_TEST_ACCEPTS, nothing, "denied" },
    { "proxy_pass group; limit_conn z 1;", GROUP "limit_conn_zone $protocol zone=z:64k; ", NULL,
        FB_TEST_ACCEPTS, connect_another, "limit" },
    { "proxy_pass group;", GROUP, "proxy_protocol", FB_TEST_ACCEPTS, say_no_header, "bad_input" },
    { "proxy_pass group;", GROUP, NULL, FB_TEST_ACCEPTS, end_worker, "shutdown" },
};

START_TEST(the_log_says_how_a_session_ended)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = ends[_i].server,
        .stream = ends[_i].stream,
        .listen = ends[_i].listen,
        .log_format = "$session_end",
    };
    struct scene scene = { .test = fb_test_start_with(&fb_protocol_proxy, &options) };
    char line[64];

    ck_assert_ptr_nonnull(scene.test);
    scene.server = fb_test_serve(scene.test, SERVER, ends[_i].reply);
    scene.client = fb_test_connect(scene.test);
    fb_test_run(scene.test);
    ends[_i].end(&scene);
    fb_test_run(scene.test);
    snprintf(line, sizeof(line), "%s\n", ends[_i].logged);
    ck_assert_str_eq(fb_test_access_log(scene.test), line);
    ck_assert_int_eq(fb_test_end(&scene.test), 0);
}
END_TEST

/* Two clients for a server with room for one: the second waits, and the third in vain. */
START_TEST(the_log_names_the_group_and_the_times_that_were_waited)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "proxy_pass group;",
        .stream =
            "upstream group { zone group 64k; server " SERVER " max_conns=1; queue 9 timeout=5s; }",
        .log_format = "$session_end $upstream_name $upstream_queue_time $upstream_name_time",
    };
    fb_test *test = fb_test_start_with(&fb_protocol_proxy, &options);
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *clients[3], *peer;

    for (int i = 0; i < 3; i++) {
        clients[i] = fb_test_connect(test);
        fb_test_run(test);
    }
    peer = fb_test_accept(server);
    fb_test_pass(test, 2000);
    fb_test_shut(peer);
    fb_test_run(test);
    fb_test_pass(test, 3000);
    fb_test_shut(clients[1]);
    fb_test_run(test);
    ck_assert_str_eq(fb_test_access_log(test), "upstream_eof group - -\n"
                                               "queue_timeout group 5.000 -\n"
                                               "client_eof group 2.000 -\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Whether the manual has exactly a row for every end. */
START_TEST(the_manual_has_a_row_for_each_end)
{
    static const char *const texts[] = {
#define SESSION_END(id, text) (text),
#include "session/end.def"
#undef SESSION_END
    };
    const char *srcdir = getenv("srcdir");
    char path[512], line[512], row[64];
    FILE *file;
    size_t n = 0;

    snprintf(path, sizeof(path), "%s/man/forkbeard.conf.5.in", srcdir != NULL ? srcdir : ".");
    file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    while (fgets(line, sizeof(line), file) != NULL && strcmp(line, ".It Va $session_end\n") != 0) {
    }
    while (fgets(line, sizeof(line), file) != NULL && strcmp(line, ".El\n") != 0) {
        if (strncmp(line, ".It ", 4) != 0)
            continue;
        ck_assert_uint_lt(n, countof(texts));
        snprintf(row, sizeof(row), ".It Cm %s\n", texts[n++]);
        ck_assert_str_eq(line, row);
    }
    fclose(file);
    ck_assert_uint_eq(n, countof(texts));
}
END_TEST

/* ---- Clients without a word ---- */

/* Opens a session ending without a byte. */
static void end_silently(fb_test *test, fb_test_server *server)
{
    fb_test_peer *client = fb_test_connect(test);

    ck_assert_ptr_nonnull(fb_test_accept(server));
    fb_test_shut(client);
    fb_test_run(test);
    ck_assert_int_eq(fb_test_is_closed(client), 1);
}

/* After a byteless session, as in a circle, a gone client connects nowhere, and a silent client
 * waits for a moment. */
START_TEST(a_client_that_has_gone_connects_nowhere)
{
    fb_test *test = start("proxy_pass " SERVER ";");
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client, *peer;

    end_silently(test, server);
    client = fb_test_connect(test);
    fb_test_shut(client);
    ck_assert_ptr_null(fb_test_accept(server));
    ck_assert_int_eq(fb_test_is_closed(client), 1);

    client = fb_test_connect(test);
    ck_assert_ptr_null(fb_test_accept(server));
    fb_test_says(client, "early");
    peer = fb_test_accept(server);
    ck_assert_ptr_nonnull(peer);
    expect_heard(peer, "early");

    client = fb_test_connect(test);
    ck_assert_ptr_null(fb_test_accept(server));
    fb_test_pass(test, 10);
    peer = fb_test_accept(server);
    ck_assert_ptr_nonnull(peer);
    fb_test_says(peer, "first");
    expect_heard(client, "first");

    fb_test_pass(test, 100);
    fb_test_connect(test);
    ck_assert_ptr_nonnull(fb_test_accept(server));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* With proxy_half_close the server may send all the same. */
START_TEST(a_client_of_half_a_connection_is_connected)
{
    fb_test *test = start("proxy_pass " SERVER "; proxy_half_close on;");
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);
    fb_test_peer *client = fb_test_connect(test);

    fb_test_reset(fb_test_accept(server));
    fb_test_run(test);
    client = fb_test_connect(test);
    fb_test_shut(client);
    ck_assert_ptr_nonnull(fb_test_accept(server));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_manual_has_a_row_for_each_end);
    tcase_add_loop_test(tcase, a_reset_takes_nothing_that_had_come_before, 0, 2);
    tcase_add_loop_test(tcase, the_log_says_how_a_session_ended, 0, (int)countof(ends));
    tcase_add_test(tcase, the_log_names_the_group_and_the_times_that_were_waited);
    tcase_add_test(tcase, a_client_that_has_gone_connects_nowhere);
    tcase_add_test(tcase, a_client_of_half_a_connection_is_connected);
}

TEST_MAIN("proxy ends", add_tests)

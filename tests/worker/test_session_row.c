/* SPDX-License-Identifier: BSD-2-Clause */
/* The awaited event of a proxied session, in its row: whether the server or the client is late. */
#include "worker/session_row.h"

#include "base/compiler.h"
#include "kit/kit.h"
#include "session/conn.h"
#include "upstream/led.h"

#include <stdlib.h>
#include <string.h>

#define SERVER "10.0.0.1:80"

static const struct {
    fb_test_reply reply;
    bool asks, answers;
    const char *waits_for;
} cases[] = {
    { FB_TEST_SILENT, true, false, "the server to accept" },
    { FB_TEST_ACCEPTS, false, false, "client or server" },
    { FB_TEST_ACCEPTS, true, false, "the server's first byte" },
    { FB_TEST_ACCEPTS, true, true, "client or server" },
};

static void expect_awaited(const fb_test *test, const char *what)
{
    const struct net *net = &test->workers[0].worker.stream.net;
    unsigned rows = 0;

    for (uint32_t i = 0; i < net->loop.sources.used_n; i++) {
        const struct fb_conn *conn = conn_at_index(net, i);
        struct json json;
        char expected[64], *row;
        size_t n;

        if (conn == NULL || conn->outgoing || !conn_is_owned(conn))
            continue;
        rows++;
        json_begin(&json);
        json_object(&json, NULL);
        session_row_write(conn, &json);
        json_close(&json);
        row = json_end(&json, &n);
        ck_assert_ptr_nonnull(row);
        snprintf(expected, sizeof(expected), "\"waits_for\":\"%s\"", what);
        ck_assert_msg(memmem(row, n, expected, strlen(expected)) != NULL, "%.*s", (int)n, row);
        free(row);
    }
    ck_assert_uint_eq(rows, 1);
}

START_TEST(the_late_end_is_named)
{
    fb_test *test = led_start("", "proxy_pass " SERVER ";");
    fb_test_server *server = fb_test_serve(test, SERVER, cases[_i].reply);
    fb_test_peer *client = fb_test_connect(test);

    fb_test_run(test);
    if (cases[_i].asks)
        fb_test_says(client, "hi");
    fb_test_run(test);
    if (cases[_i].answers)
        fb_test_says(fb_test_accept(server), "ho");
    fb_test_run(test);
    expect_awaited(test, cases[_i].waits_for);
    fb_test_reset(client);
    fb_test_run(test);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, the_late_end_is_named, 0, (int)countof(cases));
}

TEST_MAIN("session row", add_tests)

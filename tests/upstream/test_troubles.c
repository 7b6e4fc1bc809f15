/* SPDX-License-Identifier: BSD-2-Clause */
/* Troubles of sessions with a server, read by the master in the group's zone: the count raised by
 * each end. */
#include "kit/kit.h"
#include "upstream/led.h"
#include "upstream/status.h"

#define SERVER "10.0.0.1:80"

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
}

static void nothing(struct scene *scene)
{
    fb_test_pass(scene->test, 20000);
}

static void reset_server(struct scene *scene)
{
    serve(scene);
    fb_test_says(scene->peer, "ho");
    fb_test_reset(scene->peer);
}

static void reset_client(struct scene *scene)
{
    serve(scene);
    fb_test_says(scene->peer, "ho");
    fb_test_reset(scene->client);
}

static void answer_after(struct scene *scene, uint64_t ms)
{
    serve(scene);
    fb_test_pass(scene->test, ms);
    fb_test_says(scene->peer, "ho");
    fb_test_run(scene->test);
    fb_test_shut(scene->client);
}

static void answer_soon(struct scene *scene)
{
    answer_after(scene, 999);
}

static void answer_late(struct scene *scene)
{
    answer_after(scene, 1000);
}

static void never_answer(struct scene *scene)
{
    serve(scene);
    fb_test_pass(scene->test, 1000);
    fb_test_shut(scene->client);
}

static void ask_nothing(struct scene *scene)
{
    fb_test_pass(scene->test, 1000);
    fb_test_shut(scene->client);
}

static const struct {
    fb_test_reply reply;
    void (*end)(struct scene *scene);
    uint64_t troubles[PEER_TROUBLES];
} rows[] = {
    { FB_TEST_ACCEPTS, reset_server, { [PEER_RESET] = 1 } },
    { FB_TEST_ACCEPTS, reset_client, { 0 } },
    { FB_TEST_REFUSES, nothing, { [PEER_REFUSED] = 1 } },
    { FB_TEST_SILENT, nothing, { [PEER_TIMED_OUT] = 1 } },
    { FB_TEST_ACCEPTS, answer_soon, { 0 } },
    { FB_TEST_ACCEPTS, answer_late, { [PEER_SLOW] = 1 } },
    { FB_TEST_ACCEPTS, never_answer, { [PEER_SLOW] = 1 } },
    { FB_TEST_ACCEPTS, ask_nothing, { 0 } },
};

static void check_numbers(void *arg, const struct upstream_numbers *numbers)
{
    const uint64_t *troubles = arg;

    for (int i = 0; i < PEER_TROUBLES; i++)
        ck_assert_msg(numbers->troubles[i] == troubles[i], "trouble %d: %llu times", i,
            (unsigned long long)numbers->troubles[i]);
}

START_TEST(each_trouble_is_counted)
{
    struct scene scene = {
        .test = led_start("upstream group { zone group 64k; server " SERVER "; }",
            "proxy_pass group; proxy_connect_timeout 5s;"),
    };
    const struct worker *worker = &scene.test->workers[0].worker;
    const struct upstream *upstream;

    scene.server = fb_test_serve(scene.test, SERVER, rows[_i].reply);
    scene.client = fb_test_connect(scene.test);
    fb_test_run(scene.test);
    rows[_i].end(&scene);
    fb_test_run(scene.test);
    upstream = STAILQ_FIRST(worker->stream.upstreams.list);
    ck_assert_int_eq(upstream_status_read(upstream, worker->stream.net.loop.clock.mono_ms,
                         check_numbers, (void *)(uintptr_t)rows[_i].troubles),
        0);
    upstream_status_forget(upstream->zone);
    ck_assert_int_eq(fb_test_end(&scene.test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, each_trouble_is_counted, 0, (int)countof(rows));
}

TEST_MAIN("troubles", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Troubles of sessions with a server, read by the master in the group's zone, and in the statistics
 * with times and bytes: the counts raised by each end. */
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
    uint64_t sent, received; /* bytes to and from the server */
    uint64_t first_byte_ms;
} rows[] = {
    { FB_TEST_ACCEPTS, reset_server, { [PEER_RESET] = 1 }, 2, 2, 0 },
    { FB_TEST_ACCEPTS, reset_client, { 0 }, 2, 0, 0 },
    { FB_TEST_REFUSES, nothing, { [PEER_REFUSED] = 1 }, 0, 0, 0 },
    { FB_TEST_SILENT, nothing, { [PEER_TIMED_OUT] = 1 }, 0, 0, 0 },
    { FB_TEST_ACCEPTS, answer_soon, { 0 }, 2, 2, 999 },
    { FB_TEST_ACCEPTS, answer_late, { [PEER_SLOW] = 1 }, 2, 2, 1000 },
    { FB_TEST_ACCEPTS, never_answer, { [PEER_SLOW] = 1 }, 2, 0, 0 },
    { FB_TEST_ACCEPTS, ask_nothing, { 0 }, 0, 0, 0 },
};

static uint64_t count_times(const struct stats_sum_of_times *times)
{
    uint64_t n = 0;

    for (int i = 0; i < STATS_BUCKETS; i++)
        n += times->n[i];
    return n;
}

/* Checks the statistics of a server, the only one, with a try that has ended or runs. */
static void check_statistics(const struct scene *scene, int row, bool runs)
{
    bool connected = rows[row].reply == FB_TEST_ACCEPTS;
    struct stats_tries_totals totals;

    stats_read(zone_memory(scene->test->cycle->stream.tries), 1, &totals, sizeof(totals));
    ck_assert_uint_eq(totals.begun, 1);
    ck_assert_uint_eq(totals.active, runs);
    ck_assert_uint_eq(count_times(&totals.times[UPSTREAM_TIME_CONNECT]), connected);
    if (runs)
        return;
    ck_assert_uint_eq(totals.ended[connected ? 0 : 1], 1); /* served, or failed */
    ck_assert_uint_eq(count_times(&totals.times[UPSTREAM_TIME_LAST_BYTE]), connected);
    ck_assert_uint_eq(count_times(&totals.times[UPSTREAM_TIME_FIRST_BYTE]), rows[row].received > 0);
    ck_assert_uint_eq(totals.times[UPSTREAM_TIME_FIRST_BYTE].ms, rows[row].first_byte_ms);
    ck_assert_uint_eq(totals.sent, rows[row].sent);
    ck_assert_uint_eq(totals.received, rows[row].received);
    for (int i = 0; i < PEER_TROUBLES; i++)
        ck_assert_uint_eq(totals.troubles[i], rows[row].troubles[i]);
}

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
    check_statistics(&scene, _i, false);
    ck_assert_int_eq(fb_test_end(&scene.test), 0);
}
END_TEST

/* The server of a directive has no zone, but statistics as well. */
START_TEST(single_servers_have_statistics)
{
    struct scene scene = {
        .test = led_start("", "proxy_pass " SERVER "; proxy_connect_timeout 5s;"),
    };

    scene.server = fb_test_serve(scene.test, SERVER, rows[_i].reply);
    scene.client = fb_test_connect(scene.test);
    fb_test_run(scene.test);
    check_statistics(&scene, _i, rows[_i].reply != FB_TEST_REFUSES);
    rows[_i].end(&scene);
    fb_test_run(scene.test);
    check_statistics(&scene, _i, false);
    ck_assert_int_eq(fb_test_end(&scene.test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, single_servers_have_statistics, 0, (int)countof(rows));
    tcase_add_loop_test(tcase, each_trouble_is_counted, 0, (int)countof(rows));
}

TEST_MAIN("troubles", add_tests)

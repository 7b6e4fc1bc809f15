/* SPDX-License-Identifier: BSD-2-Clause */
/* proxy_session_drop: sessions with a server down, unhealthy or gone from the name's addresses end
 * in all workers, at once or spread over a time; all others go on. */
#include "kit/kit.h"
#include "upstream/led.h"
#include "upstream/peers.h"
#include "upstream/zone.h"

#include <stdio.h>

extern const fb_protocol fb_protocol_proxy;

#define A "10.0.0.1:80"
#define B "10.0.0.2:80"
#define GROUP "upstream u { zone u 64k; server " A "; server " B " backup; }"
/* A worker heeds within a second what is known of a server. */
#define SOON_MS 1000

struct session {
    fb_test_peer *client, *server;
};

static fb_test *start(const char *stream, const char *server, unsigned workers)
{
    const fb_test_options options = { .size = sizeof(options),
        .stream = stream,
        .server = server,
        .workers = workers,
        .log_format = "$session_end $status" };
    fb_test *test = fb_test_start_with(&fb_protocol_proxy, &options);

    ck_assert_ptr_nonnull(test);
    return test;
}

/* Begins a session with a server in a worker. */
static struct session begin(fb_test *test, unsigned worker, const char *address)
{
    fb_test_server *server = fb_test_serve(test, address, FB_TEST_ACCEPTS);
    struct session session = { .client = fb_test_connect_to(test, worker, 0) };

    fb_test_run(test);
    session.server = fb_test_accept(server);
    if (session.server == NULL)
        ck_abort_msg("no connection to %s, log:\n%.4000s", address, fb_test_logged(test));
    return session;
}

/* Fails the test unless bytes come through. */
static void expect_moving(fb_test *test, const struct session *session)
{
    size_t before = fb_test_heard(session->server).n;

    fb_test_says(session->client, "ping");
    fb_test_run(test);
    if (fb_test_heard(session->server).n != before + 4)
        ck_abort_msg("a session has ended, log:\n%.4000s", fb_test_logged(test));
}

static bool has_ended(const struct session *session)
{
    return fb_test_is_closed(session->client) && fb_test_is_closed(session->server);
}

static void expect_ended(fb_test *test, const struct session *session)
{
    if (!has_ended(session))
        ck_abort_msg("a session goes on, log:\n%.4000s", fb_test_logged(test));
}

static struct upstream *group_of(fb_test *test)
{
    return STAILQ_FIRST(test->workers[0].worker.stream.upstreams.list);
}

/* Says something of a server, as the master does for an operator. */
static void say(fb_test *test, const char *server, enum upstream_operator to)
{
    uint64_t now_ms = test->workers[0].worker.stream.net.loop.clock.mono_ms;

    ck_assert_int_eq(upstream_operator_set(group_of(test), server, to, now_ms), 0);
}

static const struct {
    const char *stream, *server;
    bool drops;
} places[] = {
    { GROUP, "proxy_pass u;", false },
    { GROUP, "proxy_pass u; proxy_session_drop off;", false },
    { GROUP, "proxy_pass u; proxy_session_drop on;", true },
    { "proxy_session_drop on;" GROUP, "proxy_pass u;", true },
    { "proxy_session_drop on;" GROUP, "proxy_pass u; proxy_session_drop off;", false },
    { "upstream u { zone u 64k; proxy_session_drop on; server " A "; server " B " backup; }",
        "proxy_pass u;", true },
    { "upstream u { zone u 64k; proxy_session_drop off; server " A "; server " B " backup; }",
        "proxy_pass u; proxy_session_drop on;", false },
};

START_TEST(sessions_leave_a_server_that_is_down)
{
    fb_test *test = start(places[_i].stream, places[_i].server, 2);
    struct session sessions[2], other;

    for (unsigned i = 0; i < 2; i++) {
        sessions[i] = begin(test, i, A);
        expect_moving(test, &sessions[i]);
    }
    fb_test_pass(test, 60000);
    say(test, A, UPSTREAM_DOWN);
    other = begin(test, 1, B);
    fb_test_pass(test, SOON_MS);
    for (unsigned i = 0; i < 2; i++)
        if (places[_i].drops)
            expect_ended(test, &sessions[i]);
        else
            expect_moving(test, &sessions[i]);
    expect_moving(test, &other);
    led_logged(test,
        "[notice] server \"" A "\", " A ", of upstream \"u\" is down, sessions with it "
        "that end: 1",
        places[_i].drops ? 2 : 0);
    led_logged(test, "reason: its server is not to be used", places[_i].drops ? 2 : 0);
    if (places[_i].drops)
        ck_assert_str_eq(fb_test_access_log(test), "dropped 200\ndropped 200\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* `drain` is for operators who wait for the end of a server's sessions. */
START_TEST(sessions_stay_with_a_server_that_drains)
{
    fb_test *test = start(GROUP, "proxy_pass u; proxy_session_drop on;", 1);
    struct session session = begin(test, 0, A);

    say(test, A, UPSTREAM_DRAIN);
    fb_test_pass(test, 60000);
    expect_moving(test, &session);
    say(test, A, UPSTREAM_AUTO);
    fb_test_pass(test, 60000);
    expect_moving(test, &session);
    say(test, A, UPSTREAM_DOWN);
    fb_test_pass(test, SOON_MS);
    expect_ended(test, &session);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A check is made by one worker, and heeded by all. */
START_TEST(sessions_leave_a_server_that_is_unhealthy)
{
    fb_test *test =
        start(GROUP, "proxy_pass u; proxy_session_drop on; health_check interval=5s;", 2);
    struct session sessions[2];

    fb_test_serve(test, B, FB_TEST_ACCEPTS);
    for (unsigned i = 0; i < 2; i++) {
        sessions[i] = begin(test, i, A);
        expect_moving(test, &sessions[i]);
    }
    fb_test_pass(test, 60000);
    for (unsigned i = 0; i < 2; i++)
        expect_moving(test, &sessions[i]);
    fb_test_serve(test, A, FB_TEST_REFUSES);
    fb_test_pass(test, 5000 + SOON_MS);
    for (unsigned i = 0; i < 2; i++)
        expect_ended(test, &sessions[i]);
    led_logged(test, A ", of upstream \"u\" is unhealthy, sessions with it that end: 1", 2);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A reload begins the checks anew, while the workers of before drain. */
START_TEST(sessions_stay_with_a_server_that_is_to_be_checked)
{
    fb_test *test =
        start(GROUP, "proxy_pass u; proxy_session_drop on; health_check interval=1h;", 1);
    struct session session = begin(test, 0, A);
    struct peers *peers = group_of(test)->peers;

    fb_test_pass(test, 1000);
    peers_set_health(peers, peers->list[0], PEER_HEALTH_CHECKING);
    fb_test_pass(test, 60000);
    expect_moving(test, &session);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Replaces the addresses of the group's only server by `text`. */
static void set_address(fb_test *test, const char *text)
{
    struct upstream *upstream = group_of(test);
    struct resolve_found address = { .weight = 1 };
    struct fb_target target;

    ck_assert_ptr_null(target_parse(text, false, &target));
    address.address = target.address;
    ck_assert_int_eq(
        peers_replace(upstream->peers, STAILQ_FIRST(&upstream->servers), &address, 1), 0);
}

START_TEST(sessions_leave_an_address_that_is_gone)
{
    fb_test *test = start(
        "upstream u { server a.test:80 resolve; }", "proxy_pass u; proxy_session_drop on;", 1);
    struct session gone, stays;

    fb_test_pass(test, 40000);
    set_address(test, A);
    gone = begin(test, 0, A);
    fb_test_pass(test, 2000);
    expect_moving(test, &gone);
    set_address(test, B);
    stays = begin(test, 0, B);
    fb_test_pass(test, SOON_MS);
    expect_ended(test, &gone);
    fb_test_pass(test, 5000);
    expect_moving(test, &stays);
    led_logged(test,
        "server \"a.test:80\", " A ", of upstream \"u\" has left the addresses of its "
        "name, sessions with it that end: 1",
        1);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* An address back in time keeps all remaining sessions, and may be set down then. */
START_TEST(sessions_stay_with_an_address_that_comes_back)
{
    fb_test *test = start("upstream u { zone u 64k; server a.test:80 resolve; }",
        "proxy_pass u; proxy_session_drop on over=1m;", 1);
    struct session session;

    fb_test_pass(test, 40000);
    set_address(test, A);
    session = begin(test, 0, A);
    set_address(test, B);
    fb_test_pass(test, SOON_MS);
    led_logged(test, "has left the addresses of its name", 1);
    set_address(test, A);
    fb_test_pass(test, 120000);
    expect_moving(test, &session);
    say(test, A, UPSTREAM_DOWN);
    fb_test_pass(test, 60000 + SOON_MS);
    expect_ended(test, &session);
    led_logged(test, "is down, sessions with it that end: 1", 1);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

#define SPREAD 40

/* Returns how many of the sessions have ended. */
static unsigned count_ended(const struct session *sessions)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SPREAD; i++)
        n += has_ended(&sessions[i]);
    return n;
}

/* Sessions whose time has not come when the server is back go on. */
START_TEST(sessions_end_over_a_time)
{
    fb_test *test = start(GROUP, "proxy_pass u; proxy_session_drop on over=10s;", 1);
    struct session sessions[SPREAD];
    unsigned n, before = 0;

    for (unsigned i = 0; i < SPREAD; i++)
        sessions[i] = begin(test, 0, A);
    say(test, A, UPSTREAM_DOWN);
    fb_test_pass(test, SOON_MS);
    for (unsigned second = 1; second < 10; second += 2) {
        fb_test_pass(test, 2000);
        n = count_ended(sessions);
        ck_assert_msg(n - before >= SPREAD / 10 && n - before <= SPREAD * 3 / 10,
            "in 2 s: %u of %u", n - before, SPREAD);
        before = n;
        if (_i == 1 && second == 5) {
            say(test, A, UPSTREAM_AUTO);
            break;
        }
    }
    fb_test_pass(test, 11000);
    ck_assert_uint_eq(count_ended(sessions), _i == 1 ? before : SPREAD);
    led_logged(test, "is down, sessions with it that end: 40", 1);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

#define MANY 600

/* A turn does not end all of many sessions, and the next ones soon do. */
START_TEST(many_sessions_end_in_several_turns)
{
    const fb_test_options options = { .size = sizeof(options),
        .stream = GROUP,
        .server = "proxy_pass u; proxy_session_drop on;",
        .worker_connections = 2 * MANY + 16 };
    fb_test *test = fb_test_start_with(&fb_protocol_proxy, &options);
    const struct net *net = &test->workers[0].worker.stream.net;

    fb_test_serve(test, A, FB_TEST_ACCEPTS);
    for (unsigned i = 0; i < MANY; i++)
        fb_test_connect(test);
    fb_test_run(test);
    ck_assert_uint_eq(net->connection_n, 2 * MANY);
    say(test, A, UPSTREAM_DOWN);
    fb_test_pass(test, 500);
    ck_assert_uint_gt(net->connection_n, 0);
    ck_assert_uint_lt(net->connection_n, MANY);
    fb_test_pass(test, 500);
    ck_assert_uint_eq(net->connection_n, 0);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A session may be led from a server without an answer so far to the next server. */
START_TEST(sessions_that_connect_go_on)
{
    fb_test *test = start(GROUP, "proxy_pass u; proxy_session_drop on;", 1);
    struct session session;

    fb_test_serve(test, A, FB_TEST_SILENT);
    fb_test_serve(test, B, FB_TEST_ACCEPTS);
    session.client = fb_test_connect(test);
    fb_test_run(test);
    say(test, A, UPSTREAM_DOWN);
    fb_test_pass(test, 5000);
    ck_assert(!fb_test_is_closed(session.client));
    fb_test_pass(test, 60000); /* proxy_connect_timeout */
    led_expect(test, session.client, B);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A worker without dropping sessions does not wake. */
START_TEST(no_timer_runs_without_sessions)
{
    fb_test *test =
        start(GROUP, _i == 0 ? "proxy_pass u;" : "proxy_pass u; proxy_session_drop on;", 1);
    const struct stream *stream = &test->workers[0].worker.stream;
    struct session session;

    ck_assert(!timer_is_set(&stream->drop));
    session = begin(test, 0, A);
    fb_test_pass(test, 5000);
    ck_assert(timer_is_set(&stream->drop) == (_i == 1));
    led_close(test, session.client);
    fb_test_pass(test, SOON_MS);
    ck_assert(!timer_is_set(&stream->drop));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(
        tcase, sessions_leave_a_server_that_is_down, 0, (int)(sizeof(places) / sizeof(*places)));
    tcase_add_test(tcase, sessions_stay_with_a_server_that_drains);
    tcase_add_test(tcase, sessions_leave_a_server_that_is_unhealthy);
    tcase_add_test(tcase, sessions_stay_with_a_server_that_is_to_be_checked);
    tcase_add_test(tcase, sessions_leave_an_address_that_is_gone);
    tcase_add_test(tcase, sessions_stay_with_an_address_that_comes_back);
    tcase_add_loop_test(tcase, sessions_end_over_a_time, 0, 2);
    tcase_add_test(tcase, many_sessions_end_in_several_turns);
    tcase_add_test(tcase, sessions_that_connect_go_on);
    tcase_add_loop_test(tcase, no_timer_runs_without_sessions, 0, 2);
}

TEST_MAIN("drop", add_tests)

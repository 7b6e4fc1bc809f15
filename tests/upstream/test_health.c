/* SPDX-License-Identifier: BSD-2-Clause */
/* Health checks: the worker that makes the due check, a server's state after some outcomes, and the
 * part of the state that lasts over a reload. */
#include "support/memory_log.h"
#include "upstream/groups.h"
#include "upstream/health.h"

#include <errno.h>

/* Two workers with a shared state, of a common configuration unless the test differs. */
static struct group *workers[2];
static struct upstream_check check;
static struct memory_log lines;

static void setup(void)
{
    check = (struct upstream_check) { .interval = 5000, .timeout = 2000, .fails = 1, .passes = 1 };
    memory_log_open(&lines, LEVEL_INFO);
}

static void open_worker(struct group *group, unsigned servers)
{
    group->upstreams.log = &lines.log;
    group->upstream.checks = &check;
    while (group->upstream.server_n < servers)
        group_add(group, 1);
    group_open(group);
}

static void open_workers(unsigned servers)
{
    for (size_t i = 0; i < 2; i++) {
        workers[i] = group_create();
        open_worker(workers[i], servers);
    }
    for (unsigned i = 0; i < servers; i++)
        group_peer(workers[1], i)->state = group_peer(workers[0], i)->state;
}

static void teardown(void)
{
    memory_log_close(&lines);
    group_close(&workers[1]);
    group_close(&workers[0]);
}

static void expect_lines(const char *text)
{
    ck_assert_str_eq(memory_log_take(&lines), text);
}

static void pass_time(uint64_t ms)
{
    group_wait(workers[0], ms);
    group_wait(workers[1], ms);
}

static struct health_probe *claim(unsigned worker, uint64_t *wait)
{
    struct group *group = workers[worker];

    return health_claim(&group->upstreams, &group->upstream, &check, wait);
}

static void expect_none(unsigned worker, uint64_t ms)
{
    uint64_t wait;

    ck_assert_ptr_null(claim(worker, &wait));
    ck_assert_uint_eq(wait, ms);
}

static struct health_probe *expect_claim(unsigned worker)
{
    uint64_t wait;
    struct health_probe *probe = claim(worker, &wait);

    ck_assert_ptr_nonnull(probe);
    ck_assert_uint_eq(wait, 0);
    return probe;
}

static void end(unsigned worker, struct health_probe *probe, fb_probe_end how)
{
    health_end(&workers[worker]->upstreams, probe, how, "connecting to upstream",
        how == FB_PROBE_FAILED ? ECONNREFUSED : 0);
}

/* Makes a whole check by a worker, when due. */
static void make(unsigned worker, fb_probe_end how)
{
    end(worker, expect_claim(worker), how);
    pass_time(5000);
}

static struct health_state *state(void)
{
    return &group_peer(workers[0], 0)->state->checks[0];
}

#define UNHEALTHY                                                                                  \
    "t: [warn] peer is unhealthy (111: Connection refused) while connecting to upstream, health "  \
    "check of peer 127.0.0.1:9000 in upstream \"group\"\n"
#define HEALTHY                                                                                    \
    "t: [notice] peer is healthy while connecting to upstream, health check of peer "              \
    "127.0.0.1:9000 in upstream \"group\"\n"
#define FAILED                                                                                     \
    "t: [info] check failed (111: Connection refused) while connecting to upstream, health check " \
    "of peer 127.0.0.1:9000 in upstream \"group\"\n"

START_TEST(one_worker_makes_each_check)
{
    open_workers(1);
    for (unsigned i = 0; i < 10; i++) {
        struct health_probe *probe = expect_claim(i % 2);

        expect_none(!(i % 2), 5000);
        pass_time(100);
        end(i % 2, probe, FB_PROBE_PASSED);
        expect_none(i % 2, 4900);
        expect_none(!(i % 2), 4900);
        pass_time(4900);
    }
    ck_assert_uint_eq(state()->checks, 10);
}
END_TEST

START_TEST(workers_share_the_servers)
{
    struct health_probe *a, *b;

    open_workers(2);
    a = expect_claim(0);
    b = expect_claim(1);
    ck_assert_ptr_ne(a->peer->server->name, b->peer->server->name);
    ck_assert_str_eq(a->shown.target->text, "127.0.0.1:9000");
    ck_assert_str_eq(b->shown.target->text, "127.0.0.1:9001");
    expect_none(0, 5000);
    end(0, a, FB_PROBE_PASSED);
    end(1, b, FB_PROBE_PASSED);
}
END_TEST

/* A worker in a long turn knows an older time than the checking worker. */
START_TEST(a_late_worker_leaves_the_check_to_who_makes_it)
{
    struct health_probe *probe;

    open_workers(1);
    group_wait(workers[0], 900);
    probe = expect_claim(0);
    expect_none(1, 5000);
    end(0, probe, FB_PROBE_PASSED);
    ck_assert_uint_eq(state()->checks, 1);
}
END_TEST

/* A worker has died at the begin of the state. */
START_TEST(a_state_that_was_not_begun_whole_is_begun_again)
{
    open_workers(1);
    state()->id = workers[0]->loop.clock.mono_ms * 2;
    expect_none(1, HEALTH_RETRY_MS);
    pass_time(HEALTH_SLACK_MS);
    expect_none(1, HEALTH_RETRY_MS);
    pass_time(1);
    end(1, expect_claim(1), FB_PROBE_PASSED);
    expect_none(0, 5000);
}
END_TEST

START_TEST(another_takes_over_from_one_that_died)
{
    struct health_probe *lost;

    open_workers(1);
    lost = expect_claim(0);
    pass_time(4999);
    expect_none(1, 1);
    pass_time(1);
    make(1, FB_PROBE_PASSED);
    make(1, FB_PROBE_PASSED);
    ck_assert_uint_eq(state()->checks, 2);
    end(0, lost, FB_PROBE_FAILED); /* no longer counts, if the worker was only stopped */
    ck_assert_uint_eq(state()->checks, 2);
    ck_assert_uint_eq(state()->failures, 0);
}
END_TEST

START_TEST(a_check_that_takes_longer_than_the_interval_is_not_lost)
{
    struct health_probe *probe;

    check.interval = 1000;
    open_workers(1);
    probe = expect_claim(0);
    pass_time(2000);
    expect_none(1, HEALTH_SLACK_MS);
    end(0, probe, FB_PROBE_PASSED);
    end(1, expect_claim(1), FB_PROBE_PASSED); /* late, and due at once */
    expect_none(0, 1000);
}
END_TEST

START_TEST(a_check_that_was_not_made_is_made_soon)
{
    open_workers(1);
    end(0, expect_claim(0), FB_PROBE_UNUSED);
    expect_none(1, HEALTH_RETRY_MS);
    pass_time(HEALTH_RETRY_MS);
    end(1, expect_claim(1), FB_PROBE_PASSED);
    ck_assert_uint_eq(state()->checks, 1);
}
END_TEST

START_TEST(jitter_delays)
{
    check.jitter = 700;
    open_workers(1);
    end(0, expect_claim(0), FB_PROBE_PASSED);
    expect_none(0, 5000);
    pass_time(5699);
    expect_none(1, 1);
    pass_time(1);
    end(1, expect_claim(1), FB_PROBE_PASSED);
}
END_TEST

START_TEST(a_time_that_cannot_be_is_due)
{
    open_workers(1);
    PEER_STORE(state()->next_ms, UINT64_MAX);
    end(1, expect_claim(1), FB_PROBE_PASSED);
    PEER_STORE(state()->next_ms, 100000 + 5000 + 1000 + 1);
    end(1, expect_claim(1), FB_PROBE_PASSED);
    PEER_STORE(state()->health, UINT32_MAX);
    pass_time(5000);
    make(0, FB_PROBE_PASSED);
    expect_lines(HEALTHY);
    ck_assert_uint_eq(state()->health, PEER_HEALTH_GOOD);
}
END_TEST

START_TEST(sessions_avoid_a_server_after_fails_until_passes)
{
    check.fails = 2;
    check.passes = 3;
    open_workers(2);
    PEER_STORE(group_peer(workers[0], 1)->state->checks[0].next_ms, 104000); /* not of interest */
    make(0, FB_PROBE_FAILED);
    expect_lines(FAILED);
    group_expect(workers[1], "ab");
    end(0, expect_claim(0), FB_PROBE_FAILED);
    expect_lines(UNHEALTHY);
    group_expect(workers[0], "bb");
    group_expect(workers[1], "bb");
    for (unsigned i = 0; i < 2; i++) {
        PEER_STORE(state()->next_ms, 0);
        end(1, expect_claim(1), FB_PROBE_PASSED);
        group_expect(workers[0], "bb");
    }
    expect_lines("");
    PEER_STORE(state()->next_ms, 0);
    end(1, expect_claim(1), FB_PROBE_PASSED);
    expect_lines(HEALTHY);
    ck_assert_uint_ge(group_peer(workers[0], 0)->state->available_ms, 105000); /* for slow_start */
    ck_assert_uint_eq(state()->unhealthy, 1);
}
END_TEST

START_TEST(a_mark_of_failure_counts_beside_a_check_that_passes)
{
    open_workers(2);
    ck_assert_int_eq(group_session(workers[0], FB_TRY_FAILED), 'a');
    end(0, expect_claim(0), FB_PROBE_PASSED);
    end(0, expect_claim(0), FB_PROBE_PASSED);
    group_expect(workers[0], "bbb");
    pass_time(10001);
    ck_assert_ptr_nonnull(strchr("ab", group_session(workers[0], FB_TRY_SERVED)));
    ck_assert(!peer_has_failed(
        group_peer(workers[0], 0)->state, group_peer(workers[0], 0)->server, 110001));
}
END_TEST

START_TEST(a_mandatory_check_comes_first)
{
    check.mandatory = true;
    check.fails = 2;
    check.passes = 2;
    open_workers(1);
    group_expect(workers[0], "--");
    make(0, FB_PROBE_FAILED);
    expect_lines(FAILED);
    group_expect(workers[1], "-");
    make(1, FB_PROBE_PASSED); /* the first is enough */
    expect_lines(HEALTHY);
    group_expect(workers[0], "aa");
}
END_TEST

/* Opens worker 1 again, as of the next configuration, with the state that there is. */
static void reload(void)
{
    struct peer_state *kept = group_peer(workers[0], 0)->state;

    group_close(&workers[1]);
    workers[1] = group_create();
    workers[1]->upstreams.generation = 1;
    workers[1]->loop.clock = workers[0]->loop.clock;
    open_worker(workers[1], 1);
    group_peer(workers[1], 0)->state = kept;
    health_begin(workers[1]->upstream.peers, group_peer(workers[1], 0));
}

START_TEST(a_reload_keeps_the_state)
{
    open_workers(1);
    make(0, FB_PROBE_FAILED);
    expect_lines(UNHEALTHY);
    reload();
    group_expect(workers[1], "-");
    make(1, FB_PROBE_PASSED);
    expect_lines(HEALTHY);
}
END_TEST

START_TEST(a_mandatory_check_comes_first_after_a_reload_too)
{
    check.mandatory = true;
    open_workers(1);
    make(0, FB_PROBE_PASSED);
    expect_lines(HEALTHY);
    reload();
    group_expect(workers[1], "-");
    make(1, FB_PROBE_PASSED);
    expect_lines(HEALTHY);
    group_expect(workers[1], "a");
}
END_TEST

START_TEST(an_old_worker_leaves_the_state_to_new_ones)
{
    struct health_probe *old;

    check.mandatory = true;
    open_workers(1);
    old = expect_claim(0);
    reload();
    end(0, old, FB_PROBE_PASSED); /* no longer counts */
    group_expect(workers[1], "-");
    expect_none(0, HEALTH_RETRY_MS);
    end(1, expect_claim(1), FB_PROBE_PASSED);
    expect_lines(HEALTHY);
    expect_none(0, HEALTH_RETRY_MS);
    pass_time(5000);
    expect_none(0, HEALTH_RETRY_MS);
    group_expect(workers[0], "a");
}
END_TEST

START_TEST(an_old_worker_goes_on_where_a_reload_was_taken_back)
{
    check.mandatory = true;
    open_workers(1);
    reload();
    pass_time(5000 + HEALTH_SLACK_MS);
    expect_none(0, HEALTH_RETRY_MS);
    pass_time(1);
    make(0, FB_PROBE_PASSED);
    expect_lines(HEALTHY);
}
END_TEST

START_TEST(a_persistent_state_lasts)
{
    check.mandatory = check.persistent = true;
    open_workers(1);
    make(0, FB_PROBE_PASSED);
    expect_lines(HEALTHY);
    reload();
    group_expect(workers[1], "a");
}
END_TEST

START_TEST(a_group_without_checks_uses_what_one_has_condemned)
{
    open_workers(1);
    make(0, FB_PROBE_FAILED);
    expect_lines(UNHEALTHY);
    workers[1]->servers[0].is_checked = false;
    group_expect(workers[0], "-");
    group_expect(workers[1], "a");
}
END_TEST

START_TEST(one_of_two_checks_is_enough_to_condemn)
{
    struct upstream_check second = check;

    second.index = 1;
    second.port = 8080;
    second.match_name = "ok";
    check.next = &second;
    open_workers(1);
    make(0, FB_PROBE_PASSED);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t wait;
        struct health_probe *probe =
            health_claim(&workers[0]->upstreams, &workers[0]->upstream, &second, &wait);

        ck_assert_str_eq(probe->shown.target->text, "127.0.0.1:8080");
        end(0, probe, i == 0 ? FB_PROBE_FAILED : FB_PROBE_PASSED);
        ck_assert_uint_eq(
            group_peer(workers[0], 0)->state->health, i == 0 ? PEER_HEALTH_BAD : PEER_HEALTH_GOOD);
        pass_time(5000);
        make(0, FB_PROBE_PASSED);
    }
    expect_lines(
        "t: [warn] peer is unhealthy (111: Connection refused) while connecting to upstream, "
        "health check \"ok\" of peer 127.0.0.1:9000 in upstream \"group\" port 8080\n"
        "t: [notice] peer is healthy while connecting to upstream, health check \"ok\" of peer "
        "127.0.0.1:9000 in upstream \"group\" port 8080\n");
}
END_TEST

START_TEST(a_server_that_gets_no_sessions_is_not_checked)
{
    open_workers(1);
    group_peer(workers[0], 0)->is_off = true;
    expect_none(0, 5000);
    end(1, expect_claim(1), FB_PROBE_PASSED);
}
END_TEST

START_TEST(checks_that_are_left_end_with_the_worker)
{
    open_workers(2);
    expect_claim(0);
    expect_claim(0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, one_worker_makes_each_check);
    tcase_add_test(tcase, workers_share_the_servers);
    tcase_add_test(tcase, a_late_worker_leaves_the_check_to_who_makes_it);
    tcase_add_test(tcase, a_state_that_was_not_begun_whole_is_begun_again);
    tcase_add_test(tcase, another_takes_over_from_one_that_died);
    tcase_add_test(tcase, a_check_that_takes_longer_than_the_interval_is_not_lost);
    tcase_add_test(tcase, a_check_that_was_not_made_is_made_soon);
    tcase_add_test(tcase, jitter_delays);
    tcase_add_test(tcase, a_time_that_cannot_be_is_due);
    tcase_add_test(tcase, sessions_avoid_a_server_after_fails_until_passes);
    tcase_add_test(tcase, a_mark_of_failure_counts_beside_a_check_that_passes);
    tcase_add_test(tcase, a_mandatory_check_comes_first);
    tcase_add_test(tcase, a_reload_keeps_the_state);
    tcase_add_test(tcase, a_mandatory_check_comes_first_after_a_reload_too);
    tcase_add_test(tcase, an_old_worker_leaves_the_state_to_new_ones);
    tcase_add_test(tcase, an_old_worker_goes_on_where_a_reload_was_taken_back);
    tcase_add_test(tcase, a_persistent_state_lasts);
    tcase_add_test(tcase, a_group_without_checks_uses_what_one_has_condemned);
    tcase_add_test(tcase, one_of_two_checks_is_enough_to_condemn);
    tcase_add_test(tcase, a_server_that_gets_no_sessions_is_not_checked);
    tcase_add_test(tcase, checks_that_are_left_end_with_the_worker);
}

TEST_MAIN("health", add_tests)

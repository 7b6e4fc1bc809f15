/* SPDX-License-Identifier: BSD-2-Clause */
/* Several workers in a simulated machine: their messages, deaths, and shared state. */
#include "kit/printed.h"
#include "support/test.h"

#include <forkbeard/test.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

extern const fb_protocol fb_protocol_council, fb_protocol_watcher, fb_protocol_presence;

static fb_test *start_council(unsigned workers)
{
    const fb_test_options options = {
        .size = sizeof(options), .server = "council;", .workers = workers
    };
    fb_test *test = fb_test_start_with(&fb_protocol_council, &options);

    ck_assert_ptr_nonnull(test);
    return test;
}

/* Asserts the text received by the peer, and forgets the text. */
static void expect(fb_test_peer *peer, const char *text)
{
    fb_bytes heard = fb_test_heard(peer);

    ck_assert_msg(heard.n == strlen(text) && memcmp(heard.p, text, heard.n) == 0,
        "expected \"%s\", heard \"%.*s\"", text, (int)heard.n, (const char *)heard.p);
    fb_test_forget(peer);
}

static fb_ref id_of(fb_test *test, unsigned worker)
{
    return fb_worker_id(fb_test_worker_at(test, worker, NULL));
}

/* A client of the worker, after the greeting. */
static fb_test_peer *connect_to(fb_test *test, unsigned worker)
{
    fb_test_peer *peer = fb_test_connect_to(test, worker, 0);

    fb_test_says(peer, "id\n");
    fb_test_heard(peer);
    fb_test_forget(peer);
    return peer;
}

START_TEST(workers_know_each_other)
{
    fb_test *test = start_council(4);
    fb_test_peer *peers[4];
    char text[200];

    for (unsigned i = 0; i < 4; i++) {
        peers[i] = fb_test_connect_to(test, i, 0);
        fb_test_says(peers[i], "id\n");
        snprintf(text, sizeof(text), "id %" PRIx64 " %u 4\n", id_of(test, i), i);
        expect(peers[i], text);
    }
    fb_test_says(peers[2], "who\n");
    snprintf(text, sizeof(text), "who 3 %" PRIx64 " %" PRIx64 " %" PRIx64 "\n", id_of(test, 0),
        id_of(test, 1), id_of(test, 3));
    expect(peers[2], text);
    fb_test_says(peers[1], "all hello\n");
    snprintf(text, sizeof(text), "got hello from %" PRIx64 "\n", id_of(test, 1));
    expect(peers[0], text);
    expect(peers[2], text);
    expect(peers[3], text);
    expect(peers[1], "all 3 handled, 0 declined, 0 unknown, 0 busy\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(messages_are_late_lost_and_refused)
{
    fb_test *test = start_council(2);
    fb_test_peer *a = connect_to(test, 0), *b = connect_to(test, 1);
    char got[2][100];

    snprintf(got[0], sizeof(got[0]), "got one from %" PRIx64 "\n", id_of(test, 0));
    snprintf(got[1], sizeof(got[1]), "got two from %" PRIx64 "\n", id_of(test, 1));

    fb_test_link(test, 0, 1, FB_TEST_LATE);
    fb_test_says(a, "all one\n");
    expect(a, "");
    expect(b, "");
    fb_test_says(b, "all two\n");
    expect(a, got[1]);
    expect(b, ""); /* the answer is late, too */
    fb_test_pass(test, 10000);
    expect(b, "");
    fb_test_link(test, 0, 1, FB_TEST_DELIVERS);
    expect(a, "all 1 handled, 0 declined, 0 unknown, 0 busy\n");
    fb_test_forget(b);

    fb_test_link(test, 0, 1, FB_TEST_LOST);
    fb_test_says(a, "all one\n");
    expect(a, "all 0 handled, 0 declined, 1 unknown, 0 busy\n");
    expect(b, "");
    fb_test_says(b, "all two\n"); /* handled, which its sender does not learn */
    expect(a, got[1]);
    expect(b, "all 0 handled, 0 declined, 1 unknown, 0 busy\n");

    fb_test_link(test, FB_TEST_EVERY, FB_TEST_EVERY, FB_TEST_DELIVERS);
    fb_test_link(test, FB_TEST_EVERY, 1, FB_TEST_BUSY);
    fb_test_says(a, "all one\n");
    expect(a, "all 0 handled, 0 declined, 0 unknown, 1 busy\n");
    expect(b, "");
    fb_test_says(b, "all two\n");
    expect(a, got[1]);
    expect(b, "all 1 handled, 0 declined, 0 unknown, 0 busy\n");
    fb_test_link(test, 0, 1, FB_TEST_DELIVERS);
    fb_test_says(a, "all one\n");
    expect(b, got[0]);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_dead_worker_is_replaced)
{
    fb_test *test = start_council(3);
    fb_test_peer *a = connect_to(test, 0), *b = connect_to(test, 1), *c;
    fb_ref first = id_of(test, 1);
    char text[100];

    fb_test_link(test, 0, 1, FB_TEST_LATE);
    snprintf(text, sizeof(text), "to %" PRIx64 " lost\n", first);
    fb_test_says(a, text);
    expect(a, "");
    fb_test_kill(test, 1);
    ck_assert_ptr_null(fb_test_worker_at(test, 1, NULL));
    ck_assert(fb_test_is_closed(b) && fb_test_was_reset(b));
    snprintf(text, sizeof(text), "to unknown\ngone %" PRIx64 "\n", first);
    expect(a, text);

    c = fb_test_connect_to(test, 1, 0);
    fb_test_says(c, "id\n");
    expect(c, "");
    fb_test_link(test, 0, 1, FB_TEST_DELIVERS);
    ck_assert_int_eq(fb_test_replace(test, 1), 0);
    ck_assert(id_of(test, 1) != first);
    snprintf(text, sizeof(text), "came %" PRIx64 "\n", id_of(test, 1));
    expect(a, text);
    snprintf(text, sizeof(text), "id %" PRIx64 " 1 3\ncame %" PRIx64 "\ncame %" PRIx64 "\n",
        id_of(test, 1), id_of(test, 0), id_of(test, 2));
    expect(c, text);
    fb_test_says(a, "all again\n");
    snprintf(text, sizeof(text), "got again from %" PRIx64 "\n", id_of(test, 0));
    expect(c, text);
    expect(a, "all 2 handled, 0 declined, 0 unknown, 0 busy\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A new worker knows only the existence of workers until greeted back: messages to all reach them,
 * too. A worker dead before the greeting does not count as a receiver. */
START_TEST(a_new_worker_reaches_all)
{
    fb_test *test = start_council(3);
    fb_test_peer *a = connect_to(test, 0), *b = connect_to(test, 1), *c;
    char text[200];

    fb_test_kill(test, 2);
    fb_test_forget(a);
    fb_test_forget(b);
    fb_test_link(test, FB_TEST_EVERY, 2, FB_TEST_LATE);
    ck_assert_int_eq(fb_test_replace(test, 2), 0);
    c = connect_to(test, 2);
    fb_test_says(c, "who\nall early\n");
    expect(c, "who 0\n");
    snprintf(text, sizeof(text), "came %" PRIx64 "\ngot early from %" PRIx64 "\n", id_of(test, 2),
        id_of(test, 2));
    expect(a, text);
    expect(b, text);
    expect(c, "");
    fb_test_link(test, 0, 2, FB_TEST_DELIVERS);
    snprintf(text, sizeof(text), "came %" PRIx64 "\n", id_of(test, 0));
    expect(c, text);
    fb_test_kill(test, 1);
    expect(c, "all 1 handled, 0 declined, 0 unknown, 0 busy\n");
    fb_test_forget(a);
    fb_test_says(c, "all late\n");
    snprintf(text, sizeof(text), "got late from %" PRIx64 "\n", id_of(test, 2));
    expect(a, text);
    expect(c, "all 1 handled, 0 declined, 0 unknown, 0 busy\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A worker dead after the greeting is announced like any worker. */
START_TEST(a_worker_that_came_late_goes)
{
    fb_test *test = start_council(2);
    fb_ref first = id_of(test, 0);
    fb_test_peer *b;
    char text[200];

    fb_test_kill(test, 1);
    fb_test_link(test, 0, 1, FB_TEST_LATE);
    ck_assert_int_eq(fb_test_replace(test, 1), 0);
    b = connect_to(test, 1);
    fb_test_link(test, 1, 0, FB_TEST_LATE);
    fb_test_says(b, "all early\n");
    expect(b, "");
    fb_test_link(test, 0, 1, FB_TEST_DELIVERS);
    fb_test_kill(test, 0);
    snprintf(text, sizeof(text),
        "came %" PRIx64 "\nall 0 handled, 0 declined, 1 unknown, 0 busy\ngone %" PRIx64 "\n", first,
        first);
    expect(b, text);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_drained_worker_goes)
{
    fb_test *test = start_council(2);
    fb_test_peer *a = connect_to(test, 0), *b = connect_to(test, 1);
    char text[100];

    snprintf(text, sizeof(text), "gone %" PRIx64 "\n", id_of(test, 1));
    fb_test_drain_worker(test, 1, 0);
    ck_assert_ptr_nonnull(fb_test_worker_at(test, 1, NULL));
    fb_test_says(b, "who\n");
    ck_assert_uint_gt(fb_test_heard(b).n, 0);
    expect(a, "");
    fb_test_shut(b);
    expect(a, text);
    ck_assert_ptr_null(fb_test_worker_at(test, 1, NULL));
    ck_assert_int_eq(fb_test_replace(test, 1), 0);
    fb_test_forget(a);
    fb_test_drain(test, 1000);
    fb_test_pass(test, 1000);
    ck_assert(fb_test_is_closed(a));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A stopped worker does not hold a drained worker for ever. */
START_TEST(a_drained_worker_waits_for_a_while)
{
    fb_test *test = start_council(2);
    fb_test_peer *a = connect_to(test, 0);

    fb_test_link(test, 0, 1, FB_TEST_LATE);
    fb_test_says(a, "all one\n");
    fb_test_drain_worker(test, 0, 0);
    fb_test_pass(test, 20000);
    fb_test_shut(a);
    fb_test_pass(test, 9000);
    ck_assert_ptr_nonnull(fb_test_worker_at(test, 0, NULL));
    fb_test_pass(test, 1000);
    ck_assert_ptr_null(fb_test_worker_at(test, 0, NULL));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Floods in both directions arrive whole and in order, on a troubled network. */
START_TEST(floods_arrive_in_order)
{
    const fb_test_options options = { .size = sizeof(options),
        .server = "council;",
        .workers = 3,
        .trouble = 1,
        .seed = (uint64_t)_i };
    fb_test *test = fb_test_start_with(&fb_protocol_council, &options);
    fb_test_peer *peers[3];

    ck_assert_ptr_nonnull(test);
    for (unsigned i = 0; i < 3; i++)
        peers[i] = connect_to(test, i);
    for (unsigned i = 0; i < 3; i++)
        fb_test_says(peers[i], "flood 3000\n");
    fb_test_pass(test, 2000);
    for (unsigned i = 0; i < 3; i++) {
        expect(peers[i], "sent\nflood 6000 handled, 0 declined, 0 unknown, 0 busy\n");
        fb_test_says(peers[i], "count\n");
        expect(peers[i], "count 6000 0\n");
    }
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Every run is equal: references, changes of a map in order, and the log. */
START_TEST(runs_are_the_same)
{
    static const fb_protocol *const others[] = { &fb_protocol_watcher, NULL };
    static const char *const servers[] = { "watcher;", NULL };
    const fb_test_options options = { .size = sizeof(options),
        .server = "council;",
        .workers = 3,
        .protocols = others,
        .servers = servers };
    char texts[2][20000];

    for (int i = 0; i < 2; i++) {
        fb_test *test = fb_test_start_with(&fb_protocol_council, &options);
        fb_test_peer *peer = fb_test_connect_to(test, 2, 0);

        ck_assert_ptr_nonnull(test);
        fb_test_says(peer, "ref\nwho\nall hello\n");
        peer = fb_test_connect_to(test, 1, 1);
        fb_test_says(peer, "watch\nset a\nset b\nset c\nset d\nset e\nset f\nset g\n");
        fb_test_run(test);
        snprintf(texts[i], sizeof(texts[i]), "%.*s%s", (int)fb_test_heard(peer).n,
            (const char *)fb_test_heard(peer).p, fb_test_logged(test));
        ck_assert_int_eq(fb_test_end(&test), 0);
    }
    ck_assert_str_eq(texts[0], texts[1]);
}
END_TEST

START_TEST(maps_are_shared)
{
    const fb_test_options options = { .size = sizeof(options), .server = "watcher;", .workers = 3 };
    fb_test *test = fb_test_start_with(&fb_protocol_watcher, &options);
    fb_test_peer *peers[3];

    ck_assert_ptr_nonnull(test);
    for (unsigned i = 0; i < 3; i++)
        peers[i] = fb_test_connect_to(test, i, 0);
    fb_test_says(peers[0], "watch\n");
    fb_test_says(peers[1], "watch\n");
    expect(peers[0], "watching\n");
    expect(peers[1], "watching\n");
    fb_test_says(peers[2], "set a\n");
    expect(peers[2], "done\n");
    expect(peers[0], "+a\n"); /* at once: a bell rings */
    expect(peers[1], "+a\n");
    fb_test_kill(test, 0);
    fb_test_says(peers[1], "delete a\n");
    expect(peers[1], "done\n-a\n");
    ck_assert_int_eq(fb_test_replace(test, 0), 0);
    peers[0] = fb_test_connect_to(test, 0, 0);
    fb_test_says(peers[0], "watch\n");
    expect(peers[0], "watching\n");
    fb_test_says(peers[2], "set b\n");
    expect(peers[0], "+b\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Calls of a protocol in `closed` and `worker_stop` do not happen when the process is killed,
 * except for gauges, zeroed by the master. */
START_TEST(a_death_is_seen_as_one)
{
    const fb_test_options options = {
        .size = sizeof(options), .server = "presence;", .workers = 2
    };
    fb_test *test = fb_test_start_with(&fb_protocol_presence, &options);
    fb_test_peer *a, *b;

    ck_assert_ptr_nonnull(test);
    a = fb_test_connect_to(test, 0, 0);
    b = fb_test_connect_to(test, 1, 0);
    expect(b, "2 there\n");
    ck_assert_int_eq(fb_test_metric(test, NULL, "clients"), 2);
    ck_assert_int_eq(fb_test_metric(test, "presence", "visits"), 2);
    fb_test_kill(test, 1);
    ck_assert_int_eq(fb_test_metric(test, NULL, "clients"), 1);
    ck_assert_int_eq(fb_test_metric(test, NULL, "visits"), 2);
    fb_test_says(a, "?");
    expect(a, "1 there\n2 there\n"); /* a killed worker had no time to announce the end */
    ck_assert_int_eq(fb_test_replace(test, 1), 0);
    b = fb_test_connect_to(test, 1, 0);
    expect(b, "3 there\n");
    fb_test_reset(b);
    fb_test_run(test);
    fb_test_says(a, "?");
    expect(a, "2 there\n");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Servers of several protocols, with separate callbacks, maps and metrics. */
START_TEST(a_machine_has_several_servers)
{
    static const fb_protocol *const others[] = { &fb_protocol_watcher, &fb_protocol_presence,
        NULL };
    static const char *const servers[] = { "watcher;", "presence;", "council;", NULL };
    const fb_test_options options = {
        .size = sizeof(options), .server = "council;", .protocols = others, .servers = servers
    };

    for (unsigned workers = 0; workers < 3; workers++) {
        fb_test_options own = options;
        fb_test_peer *peers[4];
        fb_test *test;

        own.workers = workers;
        test = fb_test_start_with(&fb_protocol_council, &own);
        ck_assert_ptr_nonnull(test);
        for (unsigned i = 0; i < 4; i++)
            peers[i] = fb_test_connect_to(test, workers > 0 ? i % workers : 0, i);
        fb_test_says(peers[1], "set a\n");
        expect(peers[1], "done\n");
        expect(peers[2], "1 there\n");
        fb_test_says(peers[3], "who\n");
        ck_assert_uint_gt(fb_test_heard(peers[3]).n, 5);
        ck_assert_int_eq(fb_test_metric(test, "presence", "clients"), 1);
        ck_assert_ptr_nonnull(fb_test_worker_at(test, 0, "watcher"));
        ck_assert(fb_test_worker_at(test, 0, "watcher") != fb_test_worker_at(test, 0, NULL));
        ck_assert(fb_test_worker(test) == fb_test_worker_at(test, 0, "council"));
        ck_assert_int_eq(fb_test_end(&test), 0);
    }
}
END_TEST

/* The connection of a job has ended, or the worker has, when the job is done. */
START_TEST(jobs_take_their_time)
{
    const fb_test_options options = {
        .size = sizeof(options), .server = "presence;", .workers = 2
    };
    fb_test *test = fb_test_start_with(&fb_protocol_presence, &options);
    fb_test_peer *a, *b;

    ck_assert_ptr_nonnull(test);
    a = fb_test_connect(test);
    b = fb_test_connect_to(test, 1, 0);
    fb_test_forget(a);
    fb_test_forget(b);
    fb_test_says(a, "j");
    expect(a, "job\n");
    fb_test_jobs_take(test, 300);
    fb_test_says(a, "j");
    expect(a, "");
    fb_test_pass(test, 299);
    expect(a, "");
    fb_test_pass(test, 1);
    expect(a, "job\n");
    fb_test_says(a, "j");
    fb_test_says(b, "j");
    fb_test_run(test);
    fb_test_reset(a);
    fb_test_run(test);
    fb_test_kill(test, 1);
    fb_test_pass(test, 300);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, workers_know_each_other);
    tcase_add_test(tcase, messages_are_late_lost_and_refused);
    tcase_add_test(tcase, a_dead_worker_is_replaced);
    tcase_add_test(tcase, a_new_worker_reaches_all);
    tcase_add_test(tcase, a_worker_that_came_late_goes);
    tcase_add_test(tcase, a_drained_worker_goes);
    tcase_add_test(tcase, a_drained_worker_waits_for_a_while);
    tcase_add_loop_test(tcase, floods_arrive_in_order, 0, 2);
    tcase_add_test(tcase, runs_are_the_same);
    tcase_add_test(tcase, maps_are_shared);
    tcase_add_test(tcase, a_death_is_seen_as_one);
    tcase_add_test(tcase, a_machine_has_several_servers);
    tcase_add_test(tcase, jobs_take_their_time);
}

TEST_MAIN("workers", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* A level of the error logs reaches workers by memory and a message, outlives workers and reloads,
 * and ends by a timer. */
#include "plays/case.h"

#include "base/log.h"
#include "channel/channel.h"

#include <signal.h>

#define SET(level) "{\"command\":\"log\",\"level\":\"" level "\"}"
#define SET_FOR(level, time) "{\"command\":\"log\",\"level\":\"" level "\",\"for\":\"" time "\"}"

static void set_level(struct play *play, const char *request)
{
    struct play_client *client = play_request(play, "control", request);

    ck_assert_ptr_nonnull(client);
    play_settle(play);
    case_expect_ok(client);
    play_client_close(play, client);
}

static uint32_t published(const struct play_worker *worker)
{
    return worker->shared->published->log_override;
}

START_TEST(test_all_workers_are_told)
{
    struct play *play = case_start(2, "", "");
    struct play_worker *old = play_worker_find(play, 0);
    struct play_worker *workers[2];

    ck_assert_uint_eq(published(old), 0);
    old->keeps_sessions = true;
    ck_assert_ptr_nonnull(play_connect(play));
    ck_assert_ptr_nonnull(play_connect(play));
    play_settle(play);
    case_reload(play);
    for (unsigned i = 0; i < 2; i++)
        workers[i] = play_worker_find(play, i);
    ck_assert_ptr_ne(workers[0], old);
    set_level(play, SET("info"));
    ck_assert_uint_eq(published(old), LOG_OVERRIDE(LEVEL_INFO));
    ck_assert_uint_eq(old->received[MESSAGE_LOG_LEVEL], 1); /* drains */
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(workers[i]->received[MESSAGE_LOG_LEVEL], 1);
    ck_assert_str_eq(case_status(play, "log_level.level"), "info");
    ck_assert(play_has_logged(play, "\"log info\" received from "));
    set_level(play, SET("default"));
    ck_assert_uint_eq(published(old), 0);
    ck_assert_uint_eq(old->received[MESSAGE_LOG_LEVEL], 2);
    ck_assert_str_eq(case_status(play, "log_level.level"), "");
    play_destroy(play);
}
END_TEST

/* The channel of a stopped worker fills, and the worker finds the latest level later. */
START_TEST(test_the_master_waits_for_no_worker)
{
    struct play *play = case_start(1, "", "");
    struct play_worker *worker = play_worker_find(play, 0);

    worker->deaf = true;
    for (unsigned i = 0; i < 300; i++) {
        set_level(play, SET("debug"));
        set_level(play, SET("error"));
    }
    worker->deaf = false;
    play_pass(play, 1000);
    ck_assert_uint_gt(worker->received[MESSAGE_LOG_LEVEL], 0);
    ck_assert_uint_lt(worker->received[MESSAGE_LOG_LEVEL], 600);
    ck_assert_uint_eq(published(worker), LOG_OVERRIDE(LEVEL_ERROR));
    ck_assert_str_eq(case_status(play, "log_level.level"), "error");
    play_destroy(play);
}
END_TEST

START_TEST(test_a_reload_and_a_replaced_worker_keep_it)
{
    struct play *play = case_start(1, "", "");

    set_level(play, SET("info"));
    play_worker_crash(play_worker_find(play, 0), SIGKILL);
    play_pass(play, 1000);
    ck_assert_uint_eq(published(play_worker_find(play, 0)), LOG_OVERRIDE(LEVEL_INFO));
    case_reload(play); /* pool_check() looks at the level of the master's log */
    ck_assert_uint_eq(published(play_worker_find(play, 0)), LOG_OVERRIDE(LEVEL_INFO));
    ck_assert_str_eq(case_status(play, "log_level.level"), "info");
    play_destroy(play);
}
END_TEST

START_TEST(test_its_time_ends_it)
{
    struct play *play = case_start(1, "", "");
    struct play_worker *worker = play_worker_find(play, 0);

    set_level(play, SET_FOR("debug", "10m"));
    play_pass(play, 599000);
    ck_assert_uint_eq(published(worker), LOG_OVERRIDE(LEVEL_DEBUG));
    ck_assert_str_eq(case_status(play, "log_level.left_ms"), "1000");
    play_pass(play, 1001);
    ck_assert_uint_eq(published(worker), 0);
    ck_assert_uint_eq(worker->received[MESSAGE_LOG_LEVEL], 2);
    ck_assert(play_has_logged(play, "the time of \"log debug\" has passed"));

    set_level(play, SET_FOR("debug", "1m"));
    set_level(play, SET("warn")); /* without an end now */
    play_pass(play, 61000);
    ck_assert_str_eq(case_status(play, "log_level.level"), "warn");
    ck_assert_str_eq(case_status(play, "log_level.until"), "");
    play_destroy(play);
}
END_TEST

/* The line about a level is written under the more verbose level, before or after. */
START_TEST(test_a_lower_level_is_logged_before)
{
    struct play *play = case_start(1, "", "");

    set_level(play, SET("alert"));
    ck_assert(play_has_logged(play, "\"log alert\" received from "));
    set_level(play, SET("crit"));
    ck_assert(!play_has_logged(play, "\"log crit\" received from "));
    set_level(play, SET("default"));
    ck_assert(play_has_logged(play, "\"log default\" received from "));
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_all_workers_are_told);
    tcase_add_test(tcase, test_the_master_waits_for_no_worker);
    tcase_add_test(tcase, test_a_reload_and_a_replaced_worker_keep_it);
    tcase_add_test(tcase, test_its_time_ends_it);
    tcase_add_test(tcase, test_a_lower_level_is_logged_before);
}

TEST_MAIN("log level", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The command "log": what is shown, what the host is given, and requests that are refused. */
#include "control/log_level.h"

#include "control/host.h"

/* Sends members behind the command; returns the reply. */
static const char *ask_level(struct host *host, const char *members)
{
    int fd = connect_client(host);
    char request[128];
    const char *reply;

    snprintf(request, sizeof(request), "{\"command\":\"log\"%s}\n", members);
    send_text(host, fd, request);
    reply = received(fd);
    close(fd);
    return reply;
}

START_TEST(a_level_is_set_shown_and_taken_back)
{
    struct host host;

    set_up(&host);
    host.clock.wall_ms = 86400 * 1000;
    ck_assert_str_eq(ask_level(&host, ""), "{\"ok\":true,\"log_level\":null}\n");
    ck_assert_uint_eq(host.levels_set, 0);
    ck_assert_str_eq(ask_level(&host, ",\"level\":\"info\""),
        "{\"ok\":true,\"log_level\":{\"level\":\"info\"}}\n");
    ck_assert_uint_eq(host.pool.log_level.override, LOG_OVERRIDE(LEVEL_INFO));
    ck_assert_ptr_nonnull(strstr(host.level_text, "\"log info\" received from "));
    ck_assert_str_eq(ask_level(&host, ",\"level\":\"emerg\",\"for\":\"1m 30s\""),
        "{\"ok\":true,\"log_level\":{\"level\":\"emerg\",\"until\":\"1970-01-02T00:01:30Z\","
        "\"left_ms\":90000}}\n");
    ck_assert_ptr_nonnull(strstr(host.level_text, "\"log emerg for 1m 30s\" received from "));
    host.clock.mono_ms += 1000;
    ck_assert_ptr_nonnull(strstr(ask_level(&host, ""), "\"left_ms\":89000"));
    ck_assert_str_eq(
        ask_level(&host, ",\"level\":\"default\""), "{\"ok\":true,\"log_level\":null}\n");
    ck_assert_uint_eq(host.pool.log_level.override, 0);
    ck_assert_uint_eq(host.levels_set, 3);
    tear_down(&host);
}
END_TEST

START_TEST(a_build_without_debug_lines_says_so)
{
    struct host host;

    set_up(&host);
    ck_assert_int_eq(strstr(ask_level(&host, ",\"level\":\"debug\""),
                         "\"note\":\"debug lines of events are not in this build: ") == NULL,
        DEBUG_BUILD);
    ck_assert_uint_eq(host.pool.log_level.override, LOG_OVERRIDE(LEVEL_DEBUG));
    tear_down(&host);
}
END_TEST

static const struct {
    const char *members, *error;
} wrong[] = {
    { ",\"level\":\"verbose\"",
        "unknown level \\\"verbose\\\", expected debug, info, notice, warn, error, crit, alert, "
        "emerg or default" },
    { ",\"level\":7", "unknown level \\\"\\\", expected" },
    { ",\"level\":\"default\",\"for\":\"10m\"", "only a level is set \\\"for\\\" a time" },
    { ",\"for\":\"10m\"", "only a level is set \\\"for\\\" a time" },
    { ",\"level\":\"info\",\"for\":\"5x\"",
        "\\\"for 5x\\\": expected a time from 1s to 7d, as 10m" },
    { ",\"level\":\"info\",\"for\":\"\"", "expected a time from 1s to 7d" },
    { ",\"level\":\"info\",\"for\":60", "expected a time from 1s to 7d" },
    { ",\"level\":\"info\",\"for\":\"999ms\"", "expected a time from 1s to 7d" },
    { ",\"level\":\"info\",\"for\":\"7d 1s\"", "expected a time from 1s to 7d" },
};

START_TEST(a_mistake_changes_nothing)
{
    struct host host;
    const char *reply;

    set_up(&host);
    reply = ask_level(&host, wrong[_i].members);
    ck_assert_msg(strncmp(reply, "{\"ok\":false,", 12) == 0, "%s", reply);
    ck_assert_msg(strstr(reply, wrong[_i].error) != NULL, "%s", reply);
    ck_assert_uint_eq(host.levels_set, 0);
    tear_down(&host);
}
END_TEST

START_TEST(the_status_has_a_level_that_is_set)
{
    static char status[65536];
    struct host host;

    set_up(&host);
    for (int i = 0; i < 2; i++) {
        int fd = connect_client(&host);
        ssize_t n;

        send_text(&host, fd, "{\"command\":\"status\"}\n");
        n = recv(fd, status, sizeof(status) - 1, MSG_DONTWAIT);
        ck_assert_int_gt(n, 0);
        status[n] = '\0';
        ck_assert_int_eq(strstr(status, "\"log_level\":{\"level\":\"warn\"}") != NULL, i == 1);
        ck_assert_int_eq(strstr(status, "log_level") != NULL, i == 1);
        close(fd);
        ask_level(&host, ",\"level\":\"warn\"");
    }
    tear_down(&host);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_level_is_set_shown_and_taken_back);
    tcase_add_test(tcase, a_build_without_debug_lines_says_so);
    tcase_add_loop_test(tcase, a_mistake_changes_nothing, 0, sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_test(tcase, the_status_has_a_level_that_is_set);
}

TEST_MAIN("log level", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Text printed for a failed command: the error, and the state after the failure. */
#include "cli/exchange.h"

#include "support/memory_log.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *command, *in_force, *end;
} rows[] = {
    { "reload", "", "reload failed: the previous configuration stays in force" },
    { "reload", ",\"in_force\":\"previous\"",
        "reload failed: the previous configuration is in force again" },
    { "reload", ",\"in_force\":\"new\"",
        "reload failed, and the previous configuration could not be started again: the new "
        "configuration stays in force" },
    { "resume", "", "resume failed: nothing has changed" },
    { "upgrade", "", "upgrade failed: nothing has changed, the daemon continues to serve" },
    { "quit", "", "quit failed" },
};

START_TEST(a_failure_tells_what_is_in_force)
{
    char text[128], expected[256];
    struct cmdline cmdline = { .signal = rows[_i].command };
    struct cli_exchange reply = { .fd = -1, .text = text };
    struct memory_log log;

    reply.line_n = (size_t)snprintf(
        text, sizeof(text), "{\"ok\":false,\"error\":\"no room\"%s}\n", rows[_i].in_force);
    snprintf(expected, sizeof(expected), "t: [emerg] no room\nt: [error] %s\n", rows[_i].end);
    memory_log_open(&log, LEVEL_NOTICE);
    ck_assert_int_eq(cli_print_outcome(&cmdline, &reply, &log.log), EXIT_FAILURE);
    ck_assert_str_eq(memory_log_take(&log), expected);
    memory_log_close(&log);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_failure_tells_what_is_in_force, 0, sizeof(rows) / sizeof(rows[0]));
}

TEST_MAIN("exchange", add_tests)

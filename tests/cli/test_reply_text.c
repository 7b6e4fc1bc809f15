/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies as text: the table of listeners in the status, whose first column is as wide as the
 * longest address, states of workers, problems, servers, certificates, and events. */
#include "cli/reply_text.h"

#include "support/test.h"

#include <stdlib.h>
#include <string.h>

/* Returns what a function writes of a reply, to be freed by free(). */
static char *written(void (*write)(struct json_value reply, FILE *out), const char *reply)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);

    ck_assert_ptr_nonnull(out);
    write(json_parse(reply, strlen(reply)), out);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

/* Returns the status table of the listeners as text, to be freed by free(). */
static char *write_listeners(const char *listeners)
{
    char *text, *table, status[512];

    snprintf(status, sizeof(status), "{\"listeners\":[%s]}", listeners);
    text = written(reply_text_status, status);
    table = strstr(text, "LISTENER");
    ck_assert_ptr_nonnull(table);
    table = strdup(table);
    free(text);
    return table;
}

#define NUMBERS ",\"sockets\":1,\"backlog\":511,\"queue\":2}"

START_TEST(the_longest_address_makes_the_width)
{
    static const char *const orders[] = {
        "{\"address\":\"unix:/run/a\"" NUMBERS ",{\"address\":\"[::]:80\"" NUMBERS,
        "{\"address\":\"[::]:80\"" NUMBERS ",{\"address\":\"unix:/run/a\"" NUMBERS,
    };
    static const char *const lines[] = {
        "unix:/run/a        1      511        2         -\n",
        "[::]:80            1      511        2         -\n",
    };
    char *table = write_listeners(orders[_i]), expected[256];

    snprintf(expected, sizeof(expected), "LISTENER     SOCKETS  BACKLOG    QUEUE     DROPS\n%s%s",
        lines[_i], lines[1 - _i]);
    ck_assert_str_eq(table, expected);
    free(table);
}
END_TEST

/* No address is longer than the column's title. */
START_TEST(the_title_makes_the_width)
{
    char *table = write_listeners("{\"address\":\"*:80\"" NUMBERS);

    ck_assert_str_eq(table, "LISTENER  SOCKETS  BACKLOG    QUEUE     DROPS\n"
                            "*:80            1      511        2         -\n");
    free(table);
}
END_TEST

START_TEST(an_event_has_a_line)
{
    char *text = written(reply_text_events,
        "{\"ok\":true,\"lost\":7,\"events\":[{\"number\":8,\"time\":\"2026-11-30T16:04:41.738Z\","
        "\"kind\":\"master_start\",\"text\":\"master process 1\"},{\"number\":9}]}");

    ck_assert_str_eq(text,
        "7 events before these are not kept\n"
        "     8  2026-11-30T16:04:41.738Z  master_start          master process 1\n"
        "     9  -  -                     -\n");
    free(text);
}
END_TEST

START_TEST(certificates_have_a_line_and_one_of_a_refusal)
{
    static const char reply[] =
        "{\"certificates\":[{\"certificate\":\"/a.pem\",\"names\":\"a, b\",\"not_after\":86399,"
        "\"swapped\":null},{\"certificate\":\"/b.pem\",\"refused\":1,\"error\":\"bad\"}],"
        "\"left_out\":2}";
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);

    ck_assert_ptr_nonnull(out);
    reply_text_certificates(json_parse(reply, strlen(reply)), out);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_str_eq(text, "VALID UNTIL              REPLACED                 CERTIFICATE (NAMES)\n"
                           "1970-01-01 23:59:59 UTC  -                        /a.pem (a, b)\n"
                           "-                        -                        /b.pem (-)\n"
                           "  refused at 1970-01-01 00:00:01 UTC: bad\n"
                           "\n2 certificates more are not shown\n");
    free(text);
}
END_TEST

START_TEST(a_level_of_the_logs_has_a_line)
{
    static const char *const texts[][2] = {
        { "{\"log_level\":null}", "log level: as configured\n" },
        { "{\"log_level\":{\"level\":\"debug\"},\"note\":\"no lines\"}",
            "log level: debug, set until taken back (forkbeard log default)\nno lines\n" },
        { "{\"log_level\":{\"level\":\"info\",\"until\":\"2026-11-30T16:04:41Z\",\"left_ms\":90000}"
          "}",
            "log level: info, set until 2026-11-30T16:04:41Z (1m 30s left)\n" },
    };
    char *text = written(reply_text_log, texts[_i][0]);

    ck_assert_str_eq(text, texts[_i][1]);
    free(text);
    text = written(reply_text_status, texts[_i][0]);
    ck_assert_int_eq(strstr(text, "log level: ") != NULL, _i > 0);
    free(text);
}
END_TEST

#define PROBLEM(level) "{\"level\":\"" level "\",\"problem\":\"it is\",\"advice\":\"do\"}"

START_TEST(problems_come_first_and_alone)
{
    static const struct {
        const char *list, *line, *status;
        int level;
    } cases[] = {
        { "", "OK: 0 problems, 7 connections\n", "forkbeard ", 0 },
        { PROBLEM("warning"), "WARNING: 1 problem, 7 connections\nwarning: it is: do\n",
            "PROBLEMS\n  warning: it is: do\n\nforkbeard ", 1 },
        { PROBLEM("critical") "," PROBLEM("warning"),
            "CRITICAL: 2 problems, 7 connections\ncritical: it is: do\nwarning: it is: do\n",
            "PROBLEMS\n  critical: it is: do\n  warning: it is: do\n\nforkbeard ", 2 },
    };
    char status[512], *text;

    snprintf(status, sizeof(status),
        "{\"problems\":[%s],\"problems_left_out\":0,\"totals\":{\"active\":7}}", cases[_i].list);
    ck_assert_int_eq(reply_text_level(json_parse(status, strlen(status))), cases[_i].level);
    text = written(reply_text_check, status);
    ck_assert_str_eq(text, cases[_i].line);
    free(text);
    text = written(reply_text_status, status);
    ck_assert_int_eq(strncmp(text, cases[_i].status, strlen(cases[_i].status)), 0);
    free(text);
}
END_TEST

START_TEST(problems_that_are_left_out_are_counted)
{
    char *text = written(
        reply_text_status, "{\"problems\":[" PROBLEM("warning") "],\"problems_left_out\":3}");

    ck_assert_ptr_nonnull(strstr(text, "do\n  3 problems more are not shown\n\nforkbeard "));
    free(text);
}
END_TEST

START_TEST(states_of_workers_have_their_times)
{
    char *text = written(reply_text_status,
        "{\"generations\":[{\"workers\":[{\"state\":\"stuck\",\"stuck_ms\":3200},"
        "{\"state\":\"draining\",\"drain_ms\":125000},{\"state\":\"accepting\"}]}]}");

    ck_assert_ptr_nonnull(strstr(text, "  stuck 3s          "));
    ck_assert_ptr_nonnull(strstr(text, "  draining 2m 5s    "));
    ck_assert_ptr_nonnull(strstr(text, "  accepting         "));
    free(text);
}
END_TEST

START_TEST(what_workers_use_is_shown)
{
    char *text = written(reply_text_status,
        "{\"generations\":[{\"workers\":[{\"restarts\":1,\"cpu_ms\":65000,\"memory\":3355443,"
        "\"descriptors\":12,\"descriptors_max\":1024}],\"resolver\":{\"restarts\":0,"
        "\"descriptors_max\":512}}]}");

    ck_assert_ptr_nonnull(strstr(text, "  RESTARTS       CPU    MEMORY  DESCRIPTORS\n"));
    ck_assert_ptr_nonnull(strstr(text, "         1     1m 5s      3.2M           12/1024\n"));
    ck_assert_ptr_nonnull(strstr(text, "         0         -         -            -/512\n"));
    free(text);
}
END_TEST

START_TEST(servers_have_a_line_and_one_of_their_ends)
{
    char *text = written(reply_text_status,
        "{\"servers\":[{\"listen\":\"127.0.0.1:80\",\"name\":\"a.test\",\"protocol\":\"echo\","
        "\"accepts\":9,\"active\":2,\"received\":10,\"sent\":20,\"dropped\":true,"
        "\"ended\":{\"finished\":6,\"timeout\":1}},{\"listen\":\"*:1\",\"accepts\":0,\"ended\":{}}]"
        "}");

    ck_assert_ptr_nonnull(strstr(text,
        "\nLISTEN        PROTOCOL     ACTIVE      ACCEPTED         RECEIVED             SENT\n"
        "127.0.0.1:80  echo              2             9               10               20\n"
        "  server a.test\n"
        "  dropped by a reload, and drains\n"
        "  ended: 6 finished, 1 timeout\n"
        "*:1           -                 -             0                -                -\n"));
    free(text);
}
END_TEST

START_TEST(servers_of_groups_have_times_and_troubles)
{
    char *text = written(reply_text_status,
        "{\"upstream_servers\":[{\"upstream\":\"g\",\"waits\":3,\"waiting\":1,\"times\":"
        "{\"p99_ms\":2048},\"ended\":{\"served\":2}},{\"upstream\":\"g\",\"server\":\"10.0.0.1:"
        "80\","
        "\"tries\":9,\"active\":2,\"received\":10,\"sent\":20,\"connect\":{\"p99_ms\":1},"
        "\"first_byte\":{\"p99_ms\":512},\"ended\":{\"served\":7},\"refusals\":0,\"slow\":4},"
        "{\"server\":\"others\",\"dropped\":true}]}");

    ck_assert_ptr_nonnull(strstr(text,
        "\nUPSTREAM  SERVER          ACTIVE         TRIES  CONN 99% <  BYTE 99% <         RECEIVED"
        "             SENT\n"
        "  queue of g: 1 waiting, 3 ever, 99% < 2.05s\n"
        "  ended: 2 served\n"
        "g         10.0.0.1:80          2             9         1ms       512ms               10"
        "               20\n"
        "  ended: 7 served\n"
        "  troubles: 4 slow\n"
        "-         others               -             -           -           -                -"
        "                -\n"
        "  dropped by a reload, and drains\n"));
    free(text);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_level_of_the_logs_has_a_line, 0, 3);
    tcase_add_loop_test(tcase, problems_come_first_and_alone, 0, 3);
    tcase_add_test(tcase, problems_that_are_left_out_are_counted);
    tcase_add_test(tcase, states_of_workers_have_their_times);
    tcase_add_test(tcase, what_workers_use_is_shown);
    tcase_add_test(tcase, servers_have_a_line_and_one_of_their_ends);
    tcase_add_test(tcase, servers_of_groups_have_times_and_troubles);
    tcase_add_loop_test(tcase, the_longest_address_makes_the_width, 0, 2);
    tcase_add_test(tcase, the_title_makes_the_width);
    tcase_add_test(tcase, an_event_has_a_line);
    tcase_add_test(tcase, certificates_have_a_line_and_one_of_a_refusal);
}

TEST_MAIN("reply_text", add_tests)

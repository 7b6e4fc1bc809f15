/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of `forkbeard sessions`: filters, order, sums, and hostile rows. */
#include "cli/session_rows.h"

#include "support/test.h"

#include <string.h>

static struct log nowhere;
static char shown[8192];

/* Takes the words of a command line. */
static int begin(struct session_rows *rows, struct cmdline *cmdline, char **words)
{
    log_init(&nowhere, NULL, 0);
    cmdline->argument = words[0];
    cmdline->more = words + 1;
    while (words[0] != NULL && words[cmdline->more_n + 1] != NULL)
        cmdline->more_n++;
    return session_rows_init(rows, cmdline, &nowhere);
}

static void add(struct session_rows *rows, const char *row)
{
    session_rows_add(rows, json_parse(row, strlen(row)));
}

static void add_three(struct session_rows *rows)
{
    add(rows, "{\"worker\":1,\"session\":1,\"client\":\"127.0.0.1:1111\",\"protocol\":\"echo\","
              "\"age_ms\":5000,\"idle_ms\":10,\"received\":10,\"sent\":1}");
    add(rows, "{\"worker\":1,\"session\":2,\"client\":\"127.0.0.2:2222\",\"protocol\":\"proxy\","
              "\"age_ms\":60000,\"idle_ms\":59000,\"received\":5,\"sent\":1}");
    add(rows, "{\"worker\":2,\"session\":3,\"client\":\"127.0.0.1:3333\",\"protocol\":\"echo\","
              "\"age_ms\":1000,\"idle_ms\":0,\"received\":7,\"sent\":1}");
}

static const char *show(struct session_rows *rows, bool as_json)
{
    FILE *out = fmemopen(shown, sizeof(shown), "w");

    ck_assert_ptr_nonnull(out);
    session_rows_print(rows, as_json, out);
    ck_assert_int_eq(fclose(out), 0);
    session_rows_free(rows);
    return shown;
}

static bool in_order(const char *text, const char *first, const char *second, const char *third)
{
    const char *a = strstr(text, first), *b = strstr(text, second), *c = strstr(text, third);

    return a != NULL && b != NULL && c != NULL && a < b && b < c;
}

START_TEST(rows_come_in_the_wanted_order)
{
    struct cmdline by_age = { .help = false }, by_bytes = { .sort = "received" };
    char *no_words[] = { NULL, NULL };
    struct session_rows rows;

    ck_assert_int_eq(begin(&rows, &by_age, no_words), 0);
    add_three(&rows);
    ck_assert(in_order(show(&rows, false), ":2222", ":1111", ":3333"));
    ck_assert_ptr_eq(strstr(shown, "CLIENT          LISTEN  PROTOCOL  UPSTREAM"), shown);
    ck_assert_int_eq(begin(&rows, &by_bytes, no_words), 0);
    add_three(&rows);
    ck_assert(in_order(show(&rows, true), ":1111\"", ":3333\"", ":2222\""));
}
END_TEST

static const struct {
    char *filters[2];
    const char *shown, *hidden;
} filtered[] = {
    { { "client=127.0.0.1:1", NULL }, ":1111", ":3333" },
    { { "idle=1ms", "idle=10ms" }, ":2222", ":3333" },
    { { "age=2s", "protocol=echo" }, ":1111", ":2222" },
    { { "worker=1", "received=10" }, ":1111", ":2222" },
};

START_TEST(filters_have_to_hold_all)
{
    struct cmdline cmdline = { .help = false };
    char *words[] = { filtered[_i].filters[0], filtered[_i].filters[1], NULL, NULL };
    struct session_rows rows;

    ck_assert_int_eq(begin(&rows, &cmdline, words), 0);
    add_three(&rows);
    ck_assert_ptr_nonnull(strstr(show(&rows, false), filtered[_i].shown));
    ck_assert_ptr_null(strstr(shown, filtered[_i].hidden));
}
END_TEST

START_TEST(sessions_of_a_client_are_counted)
{
    struct cmdline cmdline = { .by = "client" };
    char *no_words[] = { NULL, NULL };
    struct session_rows rows;

    ck_assert_int_eq(begin(&rows, &cmdline, no_words), 0);
    add_three(&rows);
    ck_assert_str_eq(show(&rows, true),
        "{\"client\":\"127.0.0.1\",\"sessions\":2,\"received\":17,\"sent\":2}\n"
        "{\"client\":\"127.0.0.2\",\"sessions\":1,\"received\":5,\"sent\":1}\n");
}
END_TEST

START_TEST(what_is_no_column_is_refused)
{
    static char *const wrong[] = { "client", "colour=red", "age=old", "received=-1", "=",
        "worker=x" };
    struct session_rows rows;

    for (size_t i = 0; i < countof(wrong); i++) {
        struct cmdline cmdline = { .help = false };
        char *words[] = { wrong[i], NULL, NULL };

        ck_assert_int_eq(begin(&rows, &cmdline, words), -1);
    }
    for (int i = 0; i < 3; i++) {
        struct cmdline cmdline = { .sort = i == 0 ? "colour" : NULL,
            .by = i == 1   ? "colour"
                  : i == 2 ? "age"
                           : NULL };
        char *no_words[] = { NULL, NULL };

        ck_assert_int_eq(begin(&rows, &cmdline, no_words), -1);
    }
}
END_TEST

/* A worker may write anything. */
START_TEST(a_terminal_is_not_written_to)
{
    struct cmdline cmdline = { .help = false };
    char *no_words[] = { NULL, NULL };
    struct session_rows rows;

    ck_assert_int_eq(begin(&rows, &cmdline, no_words), 0);
    add(&rows, "{\"client\":\"\\u001b[2J\\n\",\"listen\":7,\"age_ms\":\"old\",\"upstream\":[]}");
    add(&rows, "[]");
    ck_assert_ptr_null(strchr(show(&rows, false), '\033'));
    ck_assert_ptr_nonnull(strstr(shown, "\\u001b[2J\\n"));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, rows_come_in_the_wanted_order);
    tcase_add_loop_test(tcase, filters_have_to_hold_all, 0, countof(filtered));
    tcase_add_test(tcase, sessions_of_a_client_are_counted);
    tcase_add_test(tcase, what_is_no_column_is_refused);
    tcase_add_test(tcase, a_terminal_is_not_written_to);
}

TEST_MAIN("session rows", add_tests)

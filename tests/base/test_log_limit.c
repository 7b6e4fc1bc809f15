/* SPDX-License-Identifier: BSD-2-Clause */
/* The flood limit: lines, number, and the report of suppressed lines. The test sets the time,
 * except in the last tests, which go through a log. */
#include "base/log.h"

#include "base/logged.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BURST 3
#define INTERVAL 1000

static bool PRINTF_FORMAT(4, 5) holds(
    struct log_limit *limit, uint64_t now, const struct log_line *line, const char *format, ...)
{
    va_list args;
    bool held;

    va_start(args, format);
    held = log_limit_suppresses(limit, now, line, format, args);
    va_end(args);
    return held;
}

static const struct log_line plain = { .level = LEVEL_ERROR };

/* Uses the kind "n %d" up. */
static void exhaust_limit(struct log_limit *limit, uint64_t now, const char *format)
{
    for (int i = 0; i < BURST; i++)
        ck_assert(!holds(limit, now, &plain, format, i));
}

static const char first_format[] = "n %d";

START_TEST(more_than_the_burst_is_held)
{
    struct log_limit limit;
    struct log_limit_report held;

    log_limit_init(&limit, BURST, INTERVAL);
    exhaust_limit(&limit, 5000, first_format);
    ck_assert_uint_eq(limit.report_ms, 0);
    ck_assert(holds(&limit, 5001, &plain, first_format, 7));
    ck_assert(holds(&limit, 5999, &plain, first_format, 8));
    ck_assert_uint_eq(limit.report_ms, 6000);
    ck_assert(!log_limit_pop_report(&limit, 5999, false, &held));
    ck_assert_uint_eq(limit.report_ms, 6000);

    ck_assert(log_limit_pop_report(&limit, 6000, false, &held));
    ck_assert_uint_eq(held.n, 2);
    ck_assert_uint_eq(held.ms, INTERVAL);
    ck_assert_int_eq(held.level, LEVEL_ERROR);
    ck_assert_str_eq(held.like, "n 7");
    ck_assert(!log_limit_pop_report(&limit, 6000, true, &held));
    ck_assert_uint_eq(limit.report_ms, 0);

    exhaust_limit(&limit, 6000, first_format);
    ck_assert(holds(&limit, 6001, &plain, first_format, 9));
}
END_TEST

START_TEST(an_interval_begins_anew)
{
    struct log_limit limit;

    log_limit_init(&limit, BURST, INTERVAL);
    for (uint64_t now = 5000; now < 9000; now += INTERVAL)
        exhaust_limit(&limit, now, first_format);
    ck_assert_uint_eq(limit.report_ms, 0);
}
END_TEST

START_TEST(kinds_are_told_apart)
{
    static const char other_format[] = "m %d";
    const struct log_line other_level = { .level = LEVEL_WARN };
    const struct log_line other_error = { .level = LEVEL_ERROR, .error = ECONNREFUSED };
    struct log_limit limit;

    log_limit_init(&limit, BURST, INTERVAL);
    exhaust_limit(&limit, 5000, first_format);
    ck_assert(holds(&limit, 5000, &plain, first_format, 0));
    ck_assert(!holds(&limit, 5000, &plain, other_format, 0));
    ck_assert(!holds(&limit, 5000, &other_level, first_format, 0));
    ck_assert(!holds(&limit, 5000, &other_error, first_format, 0));
}
END_TEST

START_TEST(what_is_held_names_its_error)
{
    const struct log_line line = { .level = LEVEL_ERROR, .error = ECONNREFUSED };
    struct log_limit limit;
    struct log_limit_report held;
    char text[1000];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    log_limit_init(&limit, 1, INTERVAL);
    ck_assert(!holds(&limit, 5000, &line, "connect() failed"));
    ck_assert(!holds(&limit, 5000, &plain, "%s", text));
    ck_assert(holds(&limit, 5250, &line, "connect() failed"));
    ck_assert(log_limit_pop_report(&limit, 5250, true, &held));
    ck_assert_str_eq(held.like, "connect() failed (111: Connection refused)");
    ck_assert_uint_eq(held.ms, 250);
    /* lines that were reported early stay held */
    ck_assert(holds(&limit, 5251, &line, "connect() failed"));
    ck_assert(holds(&limit, 5250, &line, "%s", text) == false);
    ck_assert(holds(&limit, 5250, &plain, "%s", text));
    ck_assert(log_limit_pop_report(&limit, 7000, false, &held));
    ck_assert(log_limit_pop_report(&limit, 7000, false, &held));
    ck_assert(!log_limit_pop_report(&limit, 7000, false, &held));
}
END_TEST

/* More kinds than places: no kind to be reported is lost, and no first line of a kind is held
 * back. */
START_TEST(a_full_table_lets_lines_through)
{
    static char formats[8 * LOG_LIMIT_KINDS][4];
    struct log_limit limit;
    struct log_limit_report held;
    unsigned said = 0, kept = 0;

    log_limit_init(&limit, 1, INTERVAL);
    for (size_t i = 0; i < countof(formats); i++) {
        const char *volatile format = formats[i];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        ck_assert(!holds(&limit, 5000, &plain, format));
        kept += holds(&limit, 5000, &plain, format);
#pragma GCC diagnostic pop
    }
    ck_assert_uint_gt(kept, LOG_LIMIT_KINDS / 2);
    ck_assert_uint_le(kept, LOG_LIMIT_KINDS);
    while (log_limit_pop_report(&limit, 6000, false, &held)) {
        ck_assert_uint_eq(held.n, 1);
        said++;
    }
    ck_assert_uint_eq(said, kept);
    ck_assert_uint_eq(limit.report_ms, 0);
}
END_TEST

static unsigned count_lines(struct logged *logged, const char *text)
{
    unsigned n = 0;

    for (const char *p = logged_text(logged); (p = strstr(p, text)) != NULL; p++)
        n++;
    return n;
}

/* An interval that does not end by itself while the test runs. */
START_TEST(a_log_says_what_it_held)
{
    struct log_limit limit;
    struct logged logged;

    logged_begin(&logged, LEVEL_DEBUG);
    log_limit_init(&limit, BURST, 3600 * 1000);
    logged.log.limit = &limit;
    errno = EDOM;
    for (int i = 0; i < 10; i++)
        log_write(&logged.log, LEVEL_ERROR, 0, "flood %d", i);
    log_write(&logged.log, LEVEL_ERROR, 0, "another");
    ck_assert_uint_eq(count_lines(&logged, "flood"), BURST);
    ck_assert_uint_eq(count_lines(&logged, "another"), 1);
    log_report_suppressed(&logged.log, false);
    ck_assert_uint_eq(count_lines(&logged, "flood"), BURST);
    log_report_suppressed(&logged.log, true);
    ck_assert_uint_eq(
        count_lines(
            &logged, "[error] 123#0: 7 more lines like \"flood 3\" were suppressed in the last "),
        1);
    log_report_suppressed(&logged.log, true);
    ck_assert_uint_eq(count_lines(&logged, "suppressed"), 1);
    ck_assert_int_eq(errno, EDOM);
    logged_end(&logged);
}
END_TEST

START_TEST(one_line_is_said_in_the_singular)
{
    struct log_limit limit;
    struct logged logged;

    logged_begin(&logged, LEVEL_INFO);
    log_limit_init(&limit, 1, 3600 * 1000);
    logged.log.limit = &limit;
    for (int i = 0; i < 2; i++)
        log_write(&logged.log, LEVEL_INFO, 0, "line");
    log_report_suppressed(&logged.log, true);
    ck_assert_uint_eq(
        count_lines(&logged, "[info] 123#0: 1 more line like \"line\" was suppressed"), 1);
    logged_end(&logged);
}
END_TEST

/* The last lines of an interval precede the next interval's lines. */
START_TEST(what_is_due_is_said_before_the_next_line)
{
    struct log_limit limit;
    struct logged logged;
    const char *text, *said;

    logged_begin(&logged, LEVEL_INFO);
    log_limit_init(&limit, 1, 3600 * 1000);
    logged.log.limit = &limit;
    for (int i = 0; i < 3; i++)
        log_write(&logged.log, LEVEL_INFO, 0, "line");
    limit.report_ms = 1; /* pretends that the interval has passed */
    for (size_t i = 0; i < LOG_LIMIT_KINDS; i++)
        limit.kinds[i].begun_ms = 0;
    limit.interval_ms = 1;
    log_write(&logged.log, LEVEL_INFO, 0, "other");
    text = logged_text(&logged);
    said = strstr(text, "2 more lines");
    ck_assert_ptr_nonnull(said);
    ck_assert_ptr_nonnull(strstr(said, "other"));
    logged_end(&logged);
}
END_TEST

static const struct log_line never[] = {
    { .level = LEVEL_EMERG },
    { .level = LEVEL_ALERT },
    { .level = LEVEL_CRIT },
    { .level = LEVEL_DEBUG },
    { .level = LEVEL_INFO, .force = true },
};

START_TEST(what_is_never_held)
{
    struct log_limit limit;
    struct logged logged;

    logged_begin(&logged, LEVEL_DEBUG);
    log_limit_init(&limit, 1, 3600 * 1000);
    logged.log.limit = &limit;
    for (int i = 0; i < 20; i++)
        logged_line(&logged, &never[_i], "line");
    ck_assert_uint_eq(count_lines(&logged, "line\n"), 20);
    ck_assert_uint_eq(limit.report_ms, 0);
    logged_end(&logged);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, more_than_the_burst_is_held);
    tcase_add_test(tcase, an_interval_begins_anew);
    tcase_add_test(tcase, kinds_are_told_apart);
    tcase_add_test(tcase, what_is_held_names_its_error);
    tcase_add_test(tcase, a_full_table_lets_lines_through);
    tcase_add_test(tcase, a_log_says_what_it_held);
    tcase_add_test(tcase, one_line_is_said_in_the_singular);
    tcase_add_test(tcase, what_is_due_is_said_before_the_next_line);
    tcase_add_loop_test(tcase, what_is_never_held, 0, countof(never));
}

TEST_MAIN("log_limit", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of events: a fixed size, numbers of lost events, and texts of one line without control
 * characters. */
#include "base/event_log.h"

#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct clock clock_now = { .wall_ms = 1234 };

START_TEST(the_oldest_events_give_way)
{
    struct event_log *log = event_log_create(&clock_now);
    char text[16];

    ck_assert_ptr_nonnull(log);
    ck_assert_uint_eq(event_log_next(log, 0), 1); /* none yet */
    for (int i = 1; i <= EVENT_LOG_MAX + 3; i++) {
        clock_now.wall_ms = i;
        event_log_note(log, "kind", "event %d", i);
    }
    ck_assert_uint_eq(log->n, EVENT_LOG_MAX + 3);
    ck_assert_uint_eq(event_log_next(log, 0), 4);
    ck_assert_uint_eq(event_log_next(log, 3), 4);
    ck_assert_uint_eq(event_log_next(log, 4), 5);
    ck_assert_uint_eq(event_log_next(log, log->n - 1), log->n);
    ck_assert_uint_eq(event_log_next(log, log->n), log->n + 1);
    for (uint64_t number = 4; number <= log->n; number++) {
        const struct event_entry *event = event_log_find(log, number);

        snprintf(text, sizeof(text), "event %d", (int)number);
        ck_assert_str_eq(event->text, text);
        ck_assert_str_eq(event->kind, "kind");
        ck_assert_int_eq(event->at_ms, (int)number);
    }
    event_log_destroy(&log);
    ck_assert_ptr_null(log);
}
END_TEST

START_TEST(a_text_is_a_line_for_terminals)
{
    struct event_log *log = event_log_create(&clock_now);
    char text[2 * EVENT_TEXT_MAX];

    ck_assert_ptr_nonnull(log);
    errno = ENOENT;
    event_log_note(log, "kind", "%s", "a \x1b[2J \xc2\x9b \xc3\xa4\nb");
    ck_assert_str_eq(event_log_find(log, 1)->text, "a \\x1b[2J \xc2\\x9b \xc3\xa4");
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    event_log_note(log, "kind", "%s", text);
    ck_assert_uint_eq(strlen(event_log_find(log, 2)->text), EVENT_TEXT_MAX - 1);
    memset(text, '\1', sizeof(text) - 1);
    event_log_note(log, "kind", "%s", text);
    ck_assert_uint_eq(strlen(event_log_find(log, 3)->text), EVENT_TEXT_MAX - 1);
    ck_assert_int_eq(errno, ENOENT);
    event_log_destroy(&log);
}
END_TEST

START_TEST(a_process_without_a_ring_notes_nothing)
{
    event_log_note(NULL, "kind", "%d", 1);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_oldest_events_give_way);
    tcase_add_test(tcase, a_text_is_a_line_for_terminals);
    tcase_add_test(tcase, a_process_without_a_ring_notes_nothing);
}

TEST_MAIN("event_log", add_tests)

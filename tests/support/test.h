/* SPDX-License-Identifier: BSD-2-Clause */
/* A test program is one file: the tests, and TEST_MAIN at the end. */
#pragma once

#include "support/lacking.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* Adds a test as check does, but for the runs that lacking.def leaves out. */
#undef tcase_add_loop_test
#define tcase_add_loop_test(tcase, test, from, to)                                                 \
    do {                                                                                           \
        for (int test_i = (from); test_i < (int)(to); test_i++)                                    \
            if (test_lacks(__FILE__, #test, test_i) == NULL)                                       \
                tcase_add_loop_test_raise_signal(tcase, test, 0, test_i, test_i + 1);              \
    } while (0)
#undef tcase_add_test
#define tcase_add_test(tcase, test) tcase_add_loop_test(tcase, test, 0, 1)

#define TEST_SKIPPED 77 /* exit code for automake, of a program without any test */

/* Notes a place that a test has passed, for the report of a crash: the first time alone, because
 * check writes places into a pipe, nearly all the time of a loop with conditions. */
static inline void test_note_place(const char *file, int line)
{
    static bool noted[4096];

    if ((size_t)line >= sizeof(noted) || noted[line])
        return;
    noted[line] = true;
    _mark_point(file, line);
}

#define _mark_point(file, line) test_note_place(file, line) // NOLINT

/* ck_assert() without noting the place on success: for very frequent conditions. */
#define test_require(condition) ((condition) ? (void)0 : ck_abort_msg("%s", #condition))

/* How many of `n` trials to make: all in a long run (FORKBEARD_TEST_LONG), which "make soak" is,
 * and a third else. */
static inline unsigned test_trials(unsigned n)
{
    return getenv("FORKBEARD_TEST_LONG") != NULL ? n : (n + 2) / 3;
}

/* Whether an item of a long list is tried in this run of so many, by the number of commits (TURN of
 * tests/run). Runs by hand and long runs try all items. */
static inline bool test_has_turn(unsigned number, unsigned runs)
{
    const char *turn = getenv("TURN");
    char *end = NULL;
    unsigned long now = turn != NULL ? strtoul(turn, &end, 10) : 0;

    return end == turn || *end != 0 || (number + now) % runs == 0;
}

/* The current second; time() may still return the second before at its beginning. */
static inline time_t test_second(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec;
}

/* The longest wait of a test for an expected event, without another limit. */
#define TEST_PATIENCE_MS 30000

/* The longest time of a test: for hanging tests, on busy machines. */
#define TEST_TIMEOUT_S 180

/* TEST_MAIN("number", tcase): `tcase` adds the file's tests to a TCase. */
#define TEST_MAIN(name, add_tests)                                                                 \
    int main(void)                                                                                 \
    {                                                                                              \
        Suite *suite = suite_create(name);                                                         \
        TCase *tcase = tcase_create(name);                                                         \
        SRunner *runner = srunner_create(suite);                                                   \
        int failed, run;                                                                           \
                                                                                                   \
        tcase_set_timeout(tcase, TEST_TIMEOUT_S);                                                  \
        add_tests(tcase);                                                                          \
        suite_add_tcase(suite, tcase);                                                             \
        srunner_run_all(runner, CK_ENV);                                                           \
        failed = srunner_ntests_failed(runner);                                                    \
        run = srunner_ntests_run(runner);                                                          \
        srunner_free(runner);                                                                      \
        return failed != 0 ? EXIT_FAILURE : run != 0 ? EXIT_SUCCESS : TEST_SKIPPED;                \
    }

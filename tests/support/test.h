/* SPDX-License-Identifier: BSD-2-Clause */
/* A test program is one file: the tests, and TEST_MAIN at the end. */
#pragma once

#include "support/lacking.h"

#include <check.h>
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

/* ck_assert() without noting the place on success: for very frequent conditions. */
#define test_require(condition) ((condition) ? (void)0 : ck_abort_msg("%s", #condition))

/* How many of `n` trials to make: all in a long run (FORKBEARD_TEST_LONG), which "make soak" is,
 * and a third else. */
static inline unsigned test_trials(unsigned n)
{
    return getenv("FORKBEARD_TEST_LONG") != NULL ? n : (n + 2) / 3;
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

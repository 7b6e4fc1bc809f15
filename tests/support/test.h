/* SPDX-License-Identifier: BSD-2-Clause */
/* A test program is one file: its tests, and TEST_MAIN at its end. */
#pragma once

#include <check.h>
#include <stdlib.h>

/* ck_assert() that does not note the place each time it holds: for what runs very often. */
#define test_require(condition) ((condition) ? (void)0 : ck_abort_msg("%s", #condition))

/* TEST_MAIN("number", tcase): `tcase` adds the file's tests to a TCase. */
#define TEST_MAIN(name, add_tests)                                                                 \
    int main(void)                                                                                 \
    {                                                                                              \
        Suite *suite = suite_create(name);                                                         \
        TCase *tcase = tcase_create(name);                                                         \
        SRunner *runner = srunner_create(suite);                                                   \
        int failed;                                                                                \
                                                                                                   \
        tcase_set_timeout(tcase, 60);                                                              \
        add_tests(tcase);                                                                          \
        suite_add_tcase(suite, tcase);                                                             \
        srunner_run_all(runner, CK_ENV);                                                           \
        failed = srunner_ntests_failed(runner);                                                    \
        srunner_free(runner);                                                                      \
        return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;                                          \
    }

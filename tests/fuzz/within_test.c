/* SPDX-License-Identifier: BSD-2-Clause */
/* A test running a program's main() in the current process. */
#include "fuzz/within_test.h"

#include <check.h>
#include <stdlib.h>

static struct {
    int (*run)(int argc, char **argv);
    int argc;
    char **argv;
} given;

START_TEST(all_inputs)
{
    ck_assert_int_eq(given.run(given.argc, given.argv), EXIT_SUCCESS);
}
END_TEST

int run_within_test(int (*run)(int argc, char **argv), int argc, char **argv)
{
    Suite *suite = suite_create(argv[0]);
    TCase *tcase = tcase_create("all");
    SRunner *runner = srunner_create(suite);
    int failed;

    given.run = run;
    given.argc = argc;
    given.argv = argv;
    tcase_add_test(tcase, all_inputs);
    suite_add_tcase(suite, tcase);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

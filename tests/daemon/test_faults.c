/* SPDX-License-Identifier: BSD-2-Clause */
/* The broken workers of soak_faults.c, in a short time and at once. */
#include "daemon/abreast.h"
#include "daemon/daemon.h"
#include "daemon/soak_faults.h"

static void break_one(void *arg, unsigned i)
{
    struct soak_faults_plan plan = { (int)i, 1500, 0, i % 2 == 0 };

    (void)arg;
    soak_faults(&plan);
}

START_TEST(nobody_waits_for_what_is_broken)
{
    abreast_run(SOAK_FAULTS, SOAK_FAULTS, break_one, NULL);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, nobody_waits_for_what_is_broken);
}

TEST_MAIN("faults", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Random plays of fixed seeds; FORKBEARD_TEST_SEED sets the first seed, and FORKBEARD_TEST_PLAYS
 * the number of plays. */
#include "plays/random.h"

#include <stdio.h>

#define PLAYS 20

static unsigned long number_of(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? strtoul(text, NULL, 10) : otherwise;
}

/* Without keepers, and with keepers. */
START_TEST(test_plays)
{
    unsigned long seed = number_of("FORKBEARD_TEST_SEED", 1);
    unsigned long n = number_of("FORKBEARD_TEST_PLAYS", PLAYS), steps = 0;

    for (unsigned long i = 0; i < n; i++)
        steps += random_play(&(struct random_play_options) {
            .seed = seed + i, .acts = 6, .steps = 400, .keepers = _i == 1 });
    printf("seeds %lu to %lu: %lu steps\n", seed, seed + n - 1, steps);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, test_plays, 0, 2);
}

TEST_MAIN("random", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Random plays with whole workers, of fixed seeds; FORKBEARD_TEST_SEED sets the first seed, and
 * FORKBEARD_TEST_PLAYS the number of plays. */
#include "plays/random_sessions.h"

#include <stdio.h>

#define PLAYS 30

static unsigned long number_of(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? strtoul(text, NULL, 10) : otherwise;
}

START_TEST(test_plays)
{
    struct random_sessions_result result = { .steps = 0 };
    unsigned long seed = number_of("FORKBEARD_TEST_SEED", 1);
    unsigned long n = number_of("FORKBEARD_TEST_PLAYS", PLAYS);

    for (unsigned long i = 0; i < n; i++)
        random_sessions(
            &(struct random_sessions_options) { .seed = seed + i, .acts = 4, .steps = 600 },
            &result);
    printf("seeds %lu to %lu: %lu steps, %lu sessions, of which %lu accepted\n", seed, seed + n - 1,
        result.steps, result.connected, result.accepted);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, test_plays);
}

TEST_MAIN("random sessions", add_tests)

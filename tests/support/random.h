/* SPDX-License-Identifier: BSD-2-Clause */
/* Pseudo-random numbers, determined by the seed. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline uint32_t random_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(next_random(state) >> 32) % n;
}

/* The seed of a random test: constant unless FORKBEARD_TEST_SEED, set by "make soak", has another.
 * The seed is printed, so a log tells how to repeat the test. */
static inline uint64_t random_seed(void)
{
    const char *text = getenv("FORKBEARD_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : 1;

    printf("FORKBEARD_TEST_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

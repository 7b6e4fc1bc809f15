/* SPDX-License-Identifier: BSD-2-Clause */
/* Pseudo-random numbers of a test (splitmix64): the same sequence for the same seed, on every
 * machine. Never uses the C library's generator, whose sequence differs. */
#include "kit/kit.h"

uint32_t kit_random(uint64_t *state, uint32_t below)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    assert(below > 0);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (uint32_t)(((z ^ (z >> 31)) >> 32) % below);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes computed from bytes: see plain_keys.h. */
#include "tls/plain_keys.h"

/* Mixes a number into another (the finaliser of splitmix64). */
static uint64_t mix_number(uint64_t n)
{
    n += 0x9e3779b97f4a7c15;
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
    n = (n ^ n >> 27) * 0x94d049bb133111eb;
    return n ^ n >> 31;
}

/* Fills n bytes from a seed and a label. */
static void fill_bytes(uint8_t *p, size_t n, uint64_t seed, unsigned label)
{
    uint64_t state = mix_number(seed ^ label);

    for (size_t i = 0; i < n; i++) {
        if (i % 8 == 0)
            state = mix_number(state);
        p[i] = (uint8_t)(state >> 8 * (i % 8));
    }
}

void plain_keys_random(uint8_t random[PLAIN_RANDOM], uint64_t number)
{
    fill_bytes(random, PLAIN_RANDOM, number, 0);
}

void plain_keys_make(
    struct tls_keys *keys, const uint8_t random[PLAIN_RANDOM], enum tls_role sender)
{
    uint64_t seed = 0;

    for (size_t i = 0; i < PLAIN_RANDOM; i++)
        seed = mix_number(seed ^ random[i]);
    fill_bytes(keys->secret, sizeof(keys->secret), seed, 2 * sender + 1);
    fill_bytes(keys->key, sizeof(keys->key), seed, 2 * sender + 11);
    fill_bytes(keys->iv, sizeof(keys->iv), seed, 2 * sender + 21);
    keys->sequence = 0;
}

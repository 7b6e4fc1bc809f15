/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash-2-4, as described by the authors. The result does not depend on the byte order. */
#include "shm/siphash.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

struct state {
    uint64_t v[4];
};

static uint64_t rotate_left(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

/* Does half a round, on two pairs of words. */
static void mix_half_round(uint64_t *a, uint64_t *b, int by_b, uint64_t *c, uint64_t *d, int by_d)
{
    *a += *b;
    *c += *d;
    *b = rotate_left(*b, by_b) ^ *a;
    *d = rotate_left(*d, by_d) ^ *c;
    *a = rotate_left(*a, 32);
}

static void run_rounds(struct state *s, int n)
{
    for (int i = 0; i < n; i++) {
        mix_half_round(&s->v[0], &s->v[1], 13, &s->v[2], &s->v[3], 16);
        mix_half_round(&s->v[2], &s->v[1], 17, &s->v[0], &s->v[3], 21);
    }
}

static void absorb_word(struct state *s, uint64_t word)
{
    s->v[3] ^= word;
    run_rounds(s, 2);
    s->v[0] ^= word;
}

uint64_t siphash(const uint64_t key[2], const void *data, size_t n)
{
    struct state s = { {
        key[0] ^ 0x736f6d6570736575u,
        key[1] ^ 0x646f72616e646f6du,
        key[0] ^ 0x6c7967656e657261u,
        key[1] ^ 0x7465646279746573u,
    } };
    const unsigned char *p = data;
    uint64_t word;

    assert(p != NULL || n == 0);
    for (size_t left = n; left >= 8; left -= 8, p += 8) {
        memcpy(&word, p, 8);
        absorb_word(&s, le64toh(word));
    }
    word = (uint64_t)n << 56;
    for (size_t i = 0; i < n % 8; i++)
        word |= (uint64_t)p[i] << (8 * i);
    absorb_word(&s, word);
    s.v[2] ^= 0xff;
    run_rounds(&s, 4);
    return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}

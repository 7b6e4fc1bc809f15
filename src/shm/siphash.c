/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash-2-4 as its authors describe it, over bytes in the machine's order-independent form. */
#include "shm/siphash.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

struct state {
    uint64_t v[4];
};

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

/* Does half a round, on two pairs of words. */
static void mix(uint64_t *a, uint64_t *b, int by_b, uint64_t *c, uint64_t *d, int by_d)
{
    *a += *b;
    *c += *d;
    *b = rotate(*b, by_b) ^ *a;
    *d = rotate(*d, by_d) ^ *c;
    *a = rotate(*a, 32);
}

static void rounds(struct state *s, int n)
{
    for (int i = 0; i < n; i++) {
        mix(&s->v[0], &s->v[1], 13, &s->v[2], &s->v[3], 16);
        mix(&s->v[2], &s->v[1], 17, &s->v[0], &s->v[3], 21);
    }
}

static void absorb(struct state *s, uint64_t word)
{
    s->v[3] ^= word;
    rounds(s, 2);
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
        absorb(&s, le64toh(word));
    }
    word = (uint64_t)n << 56;
    for (size_t i = 0; i < n % 8; i++)
        word |= (uint64_t)p[i] << (8 * i);
    absorb(&s, word);
    s.v[2] ^= 0xff;
    rounds(&s, 4);
    return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}

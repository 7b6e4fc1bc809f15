/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources of memory, so that tests can count allocations and make them fail; and spare blocks of
 * one size, taken again without the allocator. A list keeps no more blocks than its source allows:
 * none in a debug build, for the allocator to see every end. Never clears a block. Invariant: a
 * block on the list has no owner. */
#pragma once

#include "base/compiler.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct memory {
    void *(*alloc)(const struct memory *memory, size_t n); /* NULL with errno */
    void (*release)(const struct memory *memory, void *p); /* p may be NULL */
    /* bytes of an arena's blocks; 0: the default; 1: a block for each piece, for tests */
    size_t block;
    /* most free blocks of a list; 0: none, for tests that count allocations */
    unsigned spares;
};

/* The C library's malloc() and free(). */
extern const struct memory memory_plain;

/* Clears n constant bytes piece by piece: all at once would be a call, or a slow instruction. */
static ALWAYS_INLINE void memory_clear(void *p, size_t n)
{
    size_t i = 0;

    if (!__builtin_constant_p(n)) {
        memset(p, 0, n);
        return;
    }
#pragma GCC unroll 8
    for (; n - i >= 64; i += 64)
        memset((char *)p + i, 0, 64);
    memset((char *)p + i, 0, n - i);
}

static inline void *memory_alloc(const struct memory *memory, size_t n)
{
    return memory->alloc(memory, n);
}

static inline void memory_release(const struct memory *memory, void *p)
{
    memory->release(memory, p);
}

struct spare {
    struct spare *next;
};

struct spares {
    const struct memory *memory;
    struct spare *first;
    size_t size; /* bytes of a block */
    unsigned n;  /* blocks on the list */
};

void spares_init(struct spares *spares, const struct memory *memory, size_t size);
/* Frees the spare blocks. */
void spares_done(struct spares *spares);
/* Asserts that the list is as long as counted, and not too long. */
void spares_check(const struct spares *spares);

/* Takes a block, of undefined bytes; NULL without memory. */
static inline void *spares_take(struct spares *spares)
{
    struct spare *block = spares->first;

    if (unlikely(block == NULL))
        return memory_alloc(spares->memory, spares->size);
    spares->first = block->next;
    spares->n--;
    return block;
}

/* Gives a block back. */
static inline void spares_give(struct spares *spares, void *p)
{
    struct spare *block = p;

    if (unlikely(spares->n >= spares->memory->spares)) {
        memory_release(spares->memory, p);
        return;
    }
    block->next = spares->first;
    spares->first = block;
    spares->n++;
}

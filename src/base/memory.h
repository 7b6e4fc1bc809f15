/* SPDX-License-Identifier: BSD-2-Clause */
/* A source of memory. Connections and arenas allocate through it, so that a test can count
 * allocations and make them fail. The daemon uses the C library's. */
#pragma once

#include "base/compiler.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct memory {
    void *(*alloc)(const struct memory *memory, size_t n); /* NULL with errno */
    void (*release)(const struct memory *memory, void *p); /* p may be NULL */
    /* size in bytes of an arena's blocks; 0: the default; 1: a block for each piece, so that a test
     * can make any allocation fail */
    size_t block;
    /* free blocks of one size that an owner may keep for its next use; 0: none, so that a test sees
     * each allocation */
    unsigned spares;
};

/* The C library's malloc() and free(). */
extern const struct memory memory_plain;

/* Clears n bytes; where the compiler knows n, piece by piece: all at once, it would have it done by
 * a call, or by an instruction that is slow to begin. */
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

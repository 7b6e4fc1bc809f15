/* SPDX-License-Identifier: BSD-2-Clause */
/* A source of memory. Connections and arenas allocate through it, so that a test can count
 * allocations and make them fail. The daemon uses the C library's. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

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

static inline void *memory_alloc(const struct memory *memory, size_t n)
{
    return memory->alloc(memory, n);
}

static inline void memory_release(const struct memory *memory, void *p)
{
    memory->release(memory, p);
}

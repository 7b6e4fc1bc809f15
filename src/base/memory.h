/* SPDX-License-Identifier: BSD-2-Clause */
/* A source of memory, so that a test can count requests and refuse them. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

struct memory {
    void *(*alloc)(const struct memory *memory, size_t n); /* NULL with errno */
    void (*release)(const struct memory *memory, void *p); /* p may be NULL */
    /* bytes that an arena takes at once; 0: as it sees fit; 1: each piece alone, which a test can
     * refuse */
    size_t block;
};

/* The C library's. */
extern const struct memory memory_plain;

static inline void *memory_alloc(const struct memory *memory, size_t n)
{
    return memory->alloc(memory, n);
}

static inline void memory_release(const struct memory *memory, void *p)
{
    memory->release(memory, p);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements a source of memory by malloc() and free() of the C library. */
#include "base/memory.h"

static void *plain_alloc(const struct memory *memory, size_t n)
{
    (void)memory;
    return malloc(n);
}

static void plain_release(const struct memory *memory, void *p)
{
    (void)memory;
    free(p);
}

/* Enough for the connections that come and go in one turn of the loop. */
#define SPARES 64

const struct memory memory_plain = {
    .alloc = plain_alloc,
    .release = plain_release,
    .spares = DEBUG_BUILD ? 0 : SPARES,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory by malloc() and free() of the C library, and the life of a list of spare blocks. */
#include "base/memory.h"

#include <assert.h>

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

void spares_init(struct spares *spares, const struct memory *memory, size_t size)
{
    assert(memory != NULL && size >= sizeof(struct spare));
    *spares = (struct spares) { .memory = memory, .size = size };
}

void spares_done(struct spares *spares)
{
    struct spare *block;

    while ((block = spares->first) != NULL) {
        spares->first = block->next;
        spares->n--;
        memory_release(spares->memory, block);
    }
    assert(spares->n == 0);
}

void spares_check(const struct spares *spares)
{
    unsigned n = 0;

    for (const struct spare *block = spares->first; block != NULL; block = block->next)
        n++;
    assert(n == spares->n && n <= spares->memory->spares);
}

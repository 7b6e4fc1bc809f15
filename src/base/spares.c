/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a list of spare blocks; taking and giving are inline. */
#include "base/spares.h"

#include <assert.h>

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

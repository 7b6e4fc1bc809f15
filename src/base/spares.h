/* SPDX-License-Identifier: BSD-2-Clause */
/* Spare blocks of one size: what was given back last is taken again first, without the allocator.
 *
 * Responsible for no more blocks than the source of memory allows to keep: none in a debug build,
 * whose allocator is to see each end. Never clears a block. Invariant: a block on the list belongs
 * to nobody. */
#pragma once

#include "base/compiler.h"
#include "base/memory.h"

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
/* Asserts that the list is as long as its count says, and no longer than it may be. */
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

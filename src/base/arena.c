/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocates pieces from blocks; a large piece gets a separate block. */
#include "base/arena.h"

#include "base/check.h"

#include <bsd/sys/queue.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_SIZE 4096

struct block {
    SLIST_ENTRY(block) link;
    char *free;
    char *end;
    alignas(max_align_t) char data[];
};

#define ARENA_KIND KIND('A', 'R', 'E', 'N')

struct arena {
    unsigned kind; /* ARENA_KIND */
    const struct memory *memory;
    size_t block_size;
    SLIST_HEAD(, block) blocks; /* the first one still has room */
};

static void *alloc_zeroed(const struct memory *memory, size_t size)
{
    void *p = memory_alloc(memory, size);

    return p != NULL ? memset(p, 0, size) : NULL;
}

struct arena *arena_create_from(const struct memory *memory)
{
    struct arena *arena = alloc_zeroed(memory, sizeof(*arena));

    if (arena == NULL)
        return NULL;
    arena->kind = ARENA_KIND;
    arena->memory = memory;
    arena->block_size = memory->block > 0 ? memory->block : BLOCK_SIZE;
    SLIST_INIT(&arena->blocks);
    return arena;
}

struct arena *arena_create(void)
{
    return arena_create_from(&memory_plain);
}

void arena_destroy(struct arena **arena)
{
    const struct memory *memory;
    struct block *block;

    if (*arena == NULL)
        return;
    CHECK_KIND(*arena, ARENA_KIND);
    memory = (*arena)->memory;
    while ((block = SLIST_FIRST(&(*arena)->blocks)) != NULL) {
        assert(block->free >= block->data && block->free <= block->end);
        SLIST_REMOVE_HEAD(&(*arena)->blocks, link);
        memory_release(memory, block);
    }
    (*arena)->kind = 0;
    memory_release(memory, *arena);
    *arena = NULL;
}

/* Adds a block with room for `size` bytes, NULL without memory. */
static struct block *add_block(struct arena *arena, size_t size)
{
    struct block *first = SLIST_FIRST(&arena->blocks), *block;
    bool large = size > arena->block_size;
    size_t room = large ? size : arena->block_size;

    block = alloc_zeroed(arena->memory, sizeof(*block) + room);
    if (block == NULL)
        return NULL;
    block->free = block->data;
    block->end = block->data + room;
    if (first != NULL && large)
        SLIST_INSERT_AFTER(first, block, link);
    else
        SLIST_INSERT_HEAD(&arena->blocks, block, link);
    return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    struct block *block;
    void *p;

    CHECK_KIND(arena, ARENA_KIND);
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    block = SLIST_FIRST(&arena->blocks);
    if ((block == NULL || (size_t)(block->end - block->free) < size) &&
        (block = add_block(arena, size)) == NULL)
        return NULL;
    p = block->free;
    block->free += size;
    assert(block->free <= block->end);
    return p;
}

char *arena_strndup(struct arena *arena, const char *s, size_t n)
{
    char *copy = n < SIZE_MAX ? arena_alloc(arena, n + 1) : NULL;

    if (copy != NULL)
        memcpy(copy, s, n);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *s)
{
    return arena_strndup(arena, s, strlen(s));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    char *text;
    int n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || (text = arena_alloc(arena, (size_t)n + 1)) == NULL)
        return NULL;

    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}

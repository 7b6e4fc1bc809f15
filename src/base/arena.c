/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/arena.h"

#include <bsd/sys/queue.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE 4096

struct block {
    SLIST_ENTRY(block) link;
    char *free;
    char *end;
    alignas(max_align_t) char data[];
};

struct fb_arena {
    SLIST_HEAD(, block) blocks; /* the one that still has room is the first */
};

static struct block *block_create(size_t size)
{
    struct block *block = calloc(1, sizeof(*block) + size);

    if (block != NULL) {
        block->free = block->data;
        block->end = block->data + size;
    }
    return block;
}

struct fb_arena *fb_arena_create(void)
{
    struct fb_arena *arena = calloc(1, sizeof(*arena));

    if (arena != NULL)
        SLIST_INIT(&arena->blocks);
    return arena;
}

void fb_arena_destroy(struct fb_arena **arena)
{
    struct block *block;

    if (*arena == NULL)
        return;
    while ((block = SLIST_FIRST(&(*arena)->blocks)) != NULL) {
        SLIST_REMOVE_HEAD(&(*arena)->blocks, link);
        free(block);
    }
    free(*arena);
    *arena = NULL;
}

void *fb_arena_alloc(struct fb_arena *arena, size_t size)
{
    struct block *first = SLIST_FIRST(&arena->blocks), *block = first;
    void *p;

    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);

    if (block == NULL || (size_t)(block->end - block->free) < size) {
        block = block_create(size > BLOCK_SIZE ? size : BLOCK_SIZE);
        if (block == NULL)
            return NULL;
        if (first != NULL && size > BLOCK_SIZE)
            SLIST_INSERT_AFTER(first, block, link);
        else
            SLIST_INSERT_HEAD(&arena->blocks, block, link);
    }
    p = block->free;
    block->free += size;
    return p;
}

char *fb_arena_strndup(struct fb_arena *arena, const char *s, size_t n)
{
    char *copy = n < SIZE_MAX ? fb_arena_alloc(arena, n + 1) : NULL;

    if (copy != NULL)
        memcpy(copy, s, n);
    return copy;
}

char *fb_arena_strdup(struct fb_arena *arena, const char *s)
{
    return fb_arena_strndup(arena, s, strlen(s));
}

char *fb_arena_printf(struct fb_arena *arena, const char *format, ...)
{
    va_list args;
    char *text;
    int n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || (text = fb_arena_alloc(arena, (size_t)n + 1)) == NULL)
        return NULL;

    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* An arena of single allocations, so that a sanitizer sees each, that fails when it is told to. */
#include "support/failing_arena.h"

#include "support/test.h"

#include <bsd/sys/queue.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct failing_arena failing_arena;

struct piece {
    SLIST_ENTRY(piece) link;
    _Alignas(max_align_t) char data[];
};

struct fb_arena {
    SLIST_HEAD(, piece) pieces;
};

struct fb_arena *fb_arena_create(void)
{
    return calloc(1, sizeof(struct fb_arena));
}

void fb_arena_destroy(struct fb_arena **arena)
{
    struct piece *piece;

    if (*arena == NULL)
        return;
    while ((piece = SLIST_FIRST(&(*arena)->pieces)) != NULL) {
        SLIST_REMOVE_HEAD(&(*arena)->pieces, link);
        free(piece);
    }
    free(*arena);
    *arena = NULL;
}

void *fb_arena_alloc(struct fb_arena *arena, size_t size)
{
    struct failing_arena *failing = &failing_arena;
    struct piece *piece;

    failing->asked++;
    if (failing->fails_at != 0 && (failing->asked == failing->fails_at ||
                                      (failing->for_good && failing->asked > failing->fails_at))) {
        failing->failed = true;
        return NULL;
    }
    piece = calloc(1, sizeof(*piece) + size);
    ck_assert_ptr_nonnull(piece);
    SLIST_INSERT_HEAD(&arena->pieces, piece, link);
    return piece->data;
}

char *fb_arena_strndup(struct fb_arena *arena, const char *s, size_t n)
{
    char *copy = fb_arena_alloc(arena, n + 1);

    return copy != NULL ? memcpy(copy, s, n) : NULL;
}

char *fb_arena_strdup(struct fb_arena *arena, const char *s)
{
    return fb_arena_strndup(arena, s, strlen(s));
}

char *fb_arena_printf(struct fb_arena *arena, const char *format, ...)
{
    char *text = fb_arena_alloc(arena, 8192);
    va_list args;

    va_start(args, format);
    if (text != NULL)
        ck_assert_int_lt(vsnprintf(text, 8192, format, args), 8192);
    va_end(args);
    return text;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* An arena: memory that is given back all at once. What belongs to one configuration lives in it. */
#pragma once

#include "base/compiler.h"

#include <stddef.h>

struct fb_arena;

/* NULL without memory. */
struct fb_arena *fb_arena_create(void);
/* Gives back all that was allocated from it, and sets *arena to NULL; *arena may be NULL. */
void fb_arena_destroy(struct fb_arena **arena);

/* Zeroed and aligned for any type; NULL without memory. */
void *fb_arena_alloc(struct fb_arena *arena, size_t size);
/* A copy of n bytes with a NUL behind them; NULL without memory. */
char *fb_arena_strndup(struct fb_arena *arena, const char *s, size_t n);
char *fb_arena_strdup(struct fb_arena *arena, const char *s);
char *fb_arena_printf(struct fb_arena *arena, const char *format, ...) FB_PRINTF(2, 3);

/* SPDX-License-Identifier: BSD-2-Clause */
/* An arena: memory that is given back all at once. What belongs to one configuration lives in it.
 * No piece is given back alone, and a piece stays where it is until the arena is destroyed. */
#pragma once

#include "base/compiler.h"
#include "base/memory.h"

#include <stddef.h>

struct fb_arena;

/* NULL without memory. */
struct fb_arena *fb_arena_create(void);
/* Makes one that takes its blocks from `memory`, which outlives it. */
struct fb_arena *arena_create_from(const struct fb_memory *memory);
/* Gives back everything that was allocated from it, and sets *arena to NULL; *arena may be NULL. */
void fb_arena_destroy(struct fb_arena **arena);

/* Returns memory that is zeroed and aligned for any type; NULL without memory. */
void *fb_arena_alloc(struct fb_arena *arena, size_t size);
/* Copies n bytes and puts a NUL behind them; NULL without memory. */
char *fb_arena_strndup(struct fb_arena *arena, const char *s, size_t n);
char *fb_arena_strdup(struct fb_arena *arena, const char *s);
char *fb_arena_printf(struct fb_arena *arena, const char *format, ...) FB_PRINTF(2, 3);

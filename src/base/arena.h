/* SPDX-License-Identifier: BSD-2-Clause */
/* An arena: memory that is given back all at once. What belongs to one configuration lives in it.
 * No piece is given back alone, and a piece stays where it is until the arena is destroyed. */
#pragma once

#include "base/compiler.h"
#include "base/memory.h"

#include <stddef.h>

struct arena;

/* NULL without memory. */
struct arena *arena_create(void);
/* Makes one that takes its blocks from `memory`, which outlives it. */
struct arena *arena_create_from(const struct memory *memory);
/* Gives back everything that was allocated from it, and sets *arena to NULL; *arena may be NULL. */
void arena_destroy(struct arena **arena);

/* Returns memory that is zeroed and aligned for any type; NULL without memory. */
void *arena_alloc(struct arena *arena, size_t size);
/* Copies n bytes and puts a NUL behind them; NULL without memory. */
char *arena_strndup(struct arena *arena, const char *s, size_t n);
char *arena_strdup(struct arena *arena, const char *s);
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF_FORMAT(2, 3);

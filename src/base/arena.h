/* SPDX-License-Identifier: BSD-2-Clause */
/* An arena: memory that is freed all at once, for example everything that belongs to one
 * configuration. A single piece is never freed or moved before the arena is destroyed. */
#pragma once

#include "base/compiler.h"
#include "base/memory.h"

#include <stddef.h>

struct arena;

/* Creates an arena; NULL without memory. */
struct arena *arena_create(void);
/* Creates an arena that allocates its blocks from `memory`, which must outlive the arena. */
struct arena *arena_create_from(const struct memory *memory);
/* Frees everything that was allocated from the arena and sets *arena to NULL; *arena may be
 * NULL. */
void arena_destroy(struct arena **arena);

/* Returns memory that is zeroed and aligned for any type; NULL without memory. */
void *arena_alloc(struct arena *arena, size_t size);
/* Copies n bytes and appends a NUL; NULL without memory. */
char *arena_strndup(struct arena *arena, const char *s, size_t n);
char *arena_strdup(struct arena *arena, const char *s);
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF_FORMAT(2, 3);

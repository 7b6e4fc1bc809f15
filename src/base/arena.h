/* SPDX-License-Identifier: BSD-2-Clause */
/* An arena: memory freed all at once, as a configuration's. Pieces are never moved. */
#pragma once

#include "base/compiler.h"
#include "base/memory.h"

#include <stddef.h>

struct arena;

/* Arena functions return NULL without memory. */
struct arena *arena_create(void);
/* Allocates the blocks from `memory`, which must outlive the arena. */
struct arena *arena_create_from(const struct memory *memory);
/* Returns zeroed memory, aligned for any type. */
void *arena_alloc(struct arena *arena, size_t size);
/* Copies n bytes and appends a NUL. */
char *arena_strndup(struct arena *arena, const char *s, size_t n);
char *arena_strdup(struct arena *arena, const char *s);
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF_FORMAT(2, 3);
/* Frees the arena with all pieces, and sets *arena to NULL; *arena may be NULL. */
void arena_destroy(struct arena **arena);

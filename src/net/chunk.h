/* SPDX-License-Identifier: BSD-2-Clause */
/* Chunks: runs of bytes to be consumed or sent, and the pool of free chunks.
 *
 * Responsible for the memory of input, output and protocols' arenas, and for releasing referenced
 * memory once. Only chunk_pool_run_releases() runs release functions. Invariant: p <= end, and end
 * <= limit in a chunk of its own memory. */
#pragma once

#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>

struct heartbeat;

enum chunk_kind {
    CHUNK_OWN,  /* bytes in the chunk's own memory */
    CHUNK_REF,  /* bytes in a protocol's memory; the release function runs afterwards */
    CHUNK_FILE, /* bytes in a file */
};

struct chunk {
    struct chunk *next; /* in a ring of output, an arena, or a list of the pool */
    uint8_t *p;         /* first byte not consumed or sent */
    uint8_t *end;       /* end of the bytes */
    uint8_t *limit;     /* CHUNK_OWN: end of the memory */
    union {
        struct {
            void (*release)(void *arg);
            void *arg;
        } ref;
        struct {
            uint64_t offset, left;
            int fd;
        } file;
    };
    enum chunk_kind kind;
    unsigned protocol; /* CHUNK_REF: the index of the protocol, for the heartbeat */
    uint8_t data[];
};

/* Room of a usual chunk: header and data fill a page. */
#define CHUNK_ROOM (4096 - sizeof(struct chunk))

/* Chunks of one worker. */
struct chunk_pool {
    const struct memory *memory;
    struct spares own, foreign; /* free chunks: of the usual room, and without room */
    bool exact;                 /* a block for each piece of an arena, for a test's memory */
    struct chunk *released;     /* REF chunks with release functions not run yet */
};

void chunk_pool_init(struct chunk_pool *pool, const struct memory *memory);
/* Frees the spare chunks; every release function has run. */
void chunk_pool_done(struct chunk_pool *pool);
/* Runs the release functions of freed REF chunks, in the order in which the chunks were freed. */
NOINLINE void chunk_pool_run_releases(struct chunk_pool *pool, struct heartbeat *heartbeat);
void chunk_pool_check(const struct chunk_pool *pool);
/* Makes an empty chunk of its own memory with at least `room`; NULL without memory. */
struct chunk *chunk_create(struct chunk_pool *pool, size_t room);
/* Makes a chunk of another kind, for n bytes at p; NULL without memory. */
struct chunk *chunk_create_foreign(
    struct chunk_pool *pool, enum chunk_kind kind, const uint8_t *p, size_t n);
/* Frees a chunk, and closes its file; the release function of a REF runs later. */
void chunk_free(struct chunk_pool *pool, struct chunk *chunk);
void chunk_check(const struct chunk *chunk);
/* Takes n bytes of an arena, a list of chunks from NULL on; aligned for any type; NULL without
 * memory. With `exact` the bytes end at a block's end, so that a sanitizer sees overruns. */
void *chunk_arena_alloc(struct chunk_pool *pool, struct chunk **arena, size_t n);
/* Frees an arena, NULL then. */
void chunk_arena_release(struct chunk_pool *pool, struct chunk **arena);

static inline size_t chunk_length(const struct chunk *chunk)
{
    return chunk->kind == CHUNK_FILE ? chunk->file.left : (size_t)(chunk->end - chunk->p);
}

static inline size_t chunk_room(const struct chunk *chunk)
{
    return (size_t)(chunk->limit - chunk->end);
}

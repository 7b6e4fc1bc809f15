/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool of chunks, and arenas of chunks. Reuses pages without the allocator. */
#include "net/chunk.h"

#include "base/trace.h"
#include "os/memory.h"
#include "shm/heartbeat.h"

#include <unistd.h>

#define ALIGNMENT 16

void chunk_pool_init(struct chunk_pool *pool, const struct memory *memory)
{
    *pool = (struct chunk_pool) { .memory = memory, .exact = memory->block == 1 };
    spares_init(&pool->own, memory, sizeof(struct chunk) + CHUNK_ROOM);
    spares_init(&pool->foreign, memory, sizeof(struct chunk));
}

void chunk_pool_done(struct chunk_pool *pool)
{
    assert(pool->released == NULL);
    spares_done(&pool->own);
    spares_done(&pool->foreign);
}

struct chunk *chunk_create(struct chunk_pool *pool, size_t room)
{
    struct chunk *chunk;

    if (room <= CHUNK_ROOM) {
        room = CHUNK_ROOM;
        chunk = spares_take(&pool->own);
    } else {
        chunk = memory_alloc(pool->memory, sizeof(*chunk) + room);
    }
    if (chunk == NULL)
        return NULL;
    chunk->next = NULL;
    chunk->kind = CHUNK_OWN;
    chunk->p = chunk->end = chunk->data;
    chunk->limit = chunk->data + room;
    return chunk;
}

struct chunk *chunk_create_foreign(
    struct chunk_pool *pool, enum chunk_kind kind, const uint8_t *p, size_t n)
{
    struct chunk *chunk = spares_take(&pool->foreign);

    assert(kind != CHUNK_OWN);
    if (chunk == NULL)
        return NULL;
    chunk->next = NULL;
    chunk->kind = kind;
    chunk->p = (uint8_t *)p;
    chunk->end = chunk->limit = (uint8_t *)p + n;
    return chunk;
}

static void recycle_chunk(struct chunk_pool *pool, struct chunk *chunk)
{
    if (chunk->kind != CHUNK_OWN)
        spares_give(&pool->foreign, chunk);
    else if ((size_t)(chunk->limit - chunk->data) == CHUNK_ROOM)
        spares_give(&pool->own, chunk);
    else
        memory_release(pool->memory, chunk);
}

void chunk_free(struct chunk_pool *pool, struct chunk *chunk)
{
    assert(chunk->kind <= CHUNK_FILE);
    if (chunk->kind == CHUNK_REF) {
        assert(chunk->ref.release != NULL);
        chunk->next = pool->released;
        pool->released = chunk;
        return;
    }
    if (chunk->kind == CHUNK_FILE)
        close(chunk->file.fd);
    recycle_chunk(pool, chunk);
}

void chunk_pool_run_releases(struct chunk_pool *pool, struct heartbeat *heartbeat)
{
    struct chunk *all, *chunk;

    while (pool->released != NULL) {
        for (all = NULL; (chunk = pool->released) != NULL; all = chunk) { /* the first in front */
            pool->released = chunk->next;
            chunk->next = all;
        }
        while ((chunk = all) != NULL) {
            void (*release)(void *arg) = chunk->ref.release;
            void *arg = chunk->ref.arg;
            unsigned protocol = chunk->protocol;

            assert(chunk->kind == CHUNK_REF);
            all = chunk->next;
            recycle_chunk(pool, chunk);
            trace_callback_begin(NULL, heartbeat_callback_names[CALLBACK_RELEASE], 0);
            heartbeat_begin(heartbeat, CALLBACK_RELEASE, protocol);
            release(arg);
            if (pool->memory == NULL) /* a child of fork() has come back */
                os_wiped_end();
            trace_callback_end();
            heartbeat_end(heartbeat);
        }
    }
}

/* Takes n bytes at the end of a new chunk, whose `end` is aligned for a piece of no bytes. */
static void *alloc_exact(struct chunk_pool *pool, struct chunk **arena, size_t n)
{
    const size_t head = (sizeof(struct chunk) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    struct chunk *chunk = memory_alloc(pool->memory, head + n);
    uint8_t *p;

    if (chunk == NULL)
        return NULL;
    p = (uint8_t *)chunk + head;
    assert((uintptr_t)p % ALIGNMENT == 0);
    *chunk = (struct chunk) { .next = *arena, .kind = CHUNK_OWN, .p = chunk->data };
    chunk->end = chunk->limit = p + n / ALIGNMENT * ALIGNMENT;
    *arena = chunk;
    return p;
}

void *chunk_arena_alloc(struct chunk_pool *pool, struct chunk **arena, size_t n)
{
    struct chunk *chunk = *arena;
    size_t wanted = n;
    uint8_t *p;

    if (n > SIZE_MAX / 2)
        return NULL;
    n = (n + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    assert(chunk == NULL || chunk->kind == CHUNK_OWN);
    if (chunk == NULL || chunk_room(chunk) < n) {
        if (pool->exact)
            return alloc_exact(pool, arena, wanted);
        chunk = chunk_create(pool, n + ALIGNMENT);
        if (chunk == NULL)
            return NULL;
        chunk->end += -(uintptr_t)chunk->end & (ALIGNMENT - 1);
        chunk->next = *arena;
        *arena = chunk;
    }
    p = chunk->end;
    chunk->end += n;
    assert((uintptr_t)p % ALIGNMENT == 0 && chunk->end <= chunk->limit);
    return p;
}

void chunk_arena_release(struct chunk_pool *pool, struct chunk **arena)
{
    struct chunk *chunk;

    while ((chunk = *arena) != NULL) {
        assert(chunk->kind == CHUNK_OWN);
        *arena = chunk->next;
        chunk_free(pool, chunk);
    }
}

void chunk_check(const struct chunk *chunk)
{
    assert(chunk->kind <= CHUNK_FILE);
    if (chunk->kind == CHUNK_FILE) {
        assert(chunk->file.fd >= 0);
        return;
    }
    assert(chunk->p <= chunk->end && chunk->end <= chunk->limit);
    if (chunk->kind == CHUNK_OWN)
        assert(chunk->p >= chunk->data);
    if (chunk->kind == CHUNK_REF)
        assert(chunk->ref.release != NULL);
}

void chunk_pool_check(const struct chunk_pool *pool)
{
    spares_check(&pool->own);
    spares_check(&pool->foreign);
    for (const struct chunk *chunk = pool->released; chunk != NULL; chunk = chunk->next)
        assert(chunk->kind == CHUNK_REF);
}

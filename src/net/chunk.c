/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool of chunks, and arenas of chunks. Responsible for reusing pages instead of asking the
 * allocator at each callback. Never runs a release function within the call that frees. */
#include "net/chunk.h"

#include "os/memory.h"
#include "shm/heartbeat.h"

#include <assert.h>
#include <unistd.h>

#define ALIGNMENT 16

static struct chunk *pop_spare(struct chunk **list, unsigned *n)
{
    struct chunk *chunk = *list;

    if (chunk != NULL) {
        *list = chunk->next;
        --*n;
    }
    return chunk;
}

static bool push_spare(struct chunk **list, unsigned *n, unsigned most, struct chunk *chunk)
{
    if (*n >= most)
        return false;
    chunk->next = *list;
    *list = chunk;
    ++*n;
    return true;
}

void chunk_pool_init(struct chunk_pool *pool, const struct memory *memory)
{
    assert(memory != NULL);
    *pool = (struct chunk_pool) { .memory = memory,
        .spare_max = memory->block == 1 ? 0 : CHUNK_SPARES };
}

void chunk_pool_done(struct chunk_pool *pool)
{
    struct chunk *chunk;

    assert(pool->released == NULL);
    while ((chunk = pop_spare(&pool->spare_own, &pool->spare_own_n)) != NULL)
        memory_release(pool->memory, chunk);
    while ((chunk = pop_spare(&pool->spare_foreign, &pool->spare_foreign_n)) != NULL)
        memory_release(pool->memory, chunk);
    assert(chunk_pool_spare_n(pool) == 0);
}

unsigned chunk_pool_spare_n(const struct chunk_pool *pool)
{
    return pool->spare_own_n + pool->spare_foreign_n;
}

struct chunk *chunk_create(struct chunk_pool *pool, size_t room)
{
    struct chunk *chunk = NULL;

    if (room <= CHUNK_ROOM) {
        room = CHUNK_ROOM;
        chunk = pop_spare(&pool->spare_own, &pool->spare_own_n);
    }
    if (chunk == NULL)
        chunk = memory_alloc(pool->memory, sizeof(*chunk) + room);
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
    struct chunk *chunk = pop_spare(&pool->spare_foreign, &pool->spare_foreign_n);

    assert(kind != CHUNK_OWN);
    if (chunk == NULL)
        chunk = memory_alloc(pool->memory, sizeof(*chunk));
    if (chunk == NULL)
        return NULL;
    chunk->next = NULL;
    chunk->kind = kind;
    chunk->p = (uint8_t *)p;
    chunk->end = chunk->limit = (uint8_t *)p + n;
    return chunk;
}

/* Puts a chunk on a spare list, or returns it to the allocator where the list is full. */
static void recycle_chunk(struct chunk_pool *pool, struct chunk *chunk)
{
    bool spared = false;

    if (chunk->kind != CHUNK_OWN)
        spared = push_spare(&pool->spare_foreign, &pool->spare_foreign_n, pool->spare_max, chunk);
    else if ((size_t)(chunk->limit - chunk->data) == CHUNK_ROOM)
        spared = push_spare(&pool->spare_own, &pool->spare_own_n, pool->spare_max, chunk);
    if (!spared)
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

/* Takes the released chunks off the pool, the first that was freed in front. */
static struct chunk *take_released(struct chunk_pool *pool)
{
    struct chunk *all = NULL, *chunk;

    while ((chunk = pool->released) != NULL) {
        pool->released = chunk->next;
        chunk->next = all;
        all = chunk;
    }
    return all;
}

void chunk_pool_run_releases(struct chunk_pool *pool, struct heartbeat *heartbeat)
{
    struct chunk *all, *chunk;

    while ((all = take_released(pool)) != NULL)
        while ((chunk = all) != NULL) {
            void (*release)(void *arg) = chunk->ref.release;
            void *arg = chunk->ref.arg;
            unsigned protocol = chunk->protocol;

            assert(chunk->kind == CHUNK_REF);
            all = chunk->next;
            recycle_chunk(pool, chunk);
            heartbeat_begin(heartbeat, CALLBACK_RELEASE, protocol);
            release(arg);
            if (pool->memory == NULL) /* a child of fork() has come back */
                os_wiped_end();
            heartbeat_end(heartbeat);
        }
}

/* Takes n bytes at the end of a new chunk. The chunk's `end` is aligned: a piece of no bytes may
 * follow. */
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
        if (pool->spare_max == 0)
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
    const struct chunk *chunk;
    unsigned own = 0, foreign = 0;

    for (chunk = pool->spare_own; chunk != NULL; chunk = chunk->next) {
        assert(chunk->kind == CHUNK_OWN);
        own++;
    }
    for (chunk = pool->spare_foreign; chunk != NULL; chunk = chunk->next) {
        assert(chunk->kind != CHUNK_OWN);
        foreign++;
    }
    assert(own == pool->spare_own_n && own <= pool->spare_max);
    assert(foreign == pool->spare_foreign_n && foreign <= pool->spare_max);
    for (chunk = pool->released; chunk != NULL; chunk = chunk->next)
        assert(chunk->kind == CHUNK_REF);
}

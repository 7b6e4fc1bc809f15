/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/conn_private.h"

#include <stdlib.h>
#include <unistd.h>

/* Enough for a worker's busy connections of one turn; more goes back to the allocator. */
#define SPARE_MAX 64

static struct fb_chunk *take_spare(struct fb_chunk **list, unsigned *n)
{
    struct fb_chunk *chunk = *list;

    if (chunk != NULL) {
        *list = chunk->next;
        --*n;
    }
    return chunk;
}

static bool give_spare(struct fb_chunk **list, unsigned *n, struct fb_chunk *chunk)
{
    if (*n >= SPARE_MAX)
        return false;
    chunk->next = *list;
    *list = chunk;
    ++*n;
    return true;
}

struct fb_chunk *fb_chunk_create(struct fb_net *net, size_t room)
{
    struct fb_chunk *chunk = NULL;

    if (room <= FB_CHUNK_ROOM) {
        room = FB_CHUNK_ROOM;
        chunk = take_spare(&net->spare_chunks, &net->spare_chunk_n);
    }
    if (chunk == NULL)
        chunk = fb_memory_alloc(net->memory, sizeof(*chunk) + room);
    if (chunk == NULL)
        return NULL;
    chunk->next = NULL;
    chunk->kind = FB_CHUNK_OWN;
    chunk->p = chunk->end = chunk->data;
    chunk->limit = chunk->data + room;
    return chunk;
}

struct fb_chunk *fb_chunk_foreign(
    struct fb_net *net, enum fb_chunk_kind kind, const uint8_t *p, size_t n)
{
    struct fb_chunk *chunk = take_spare(&net->spare_views, &net->spare_view_n);

    if (chunk == NULL)
        chunk = fb_memory_alloc(net->memory, sizeof(*chunk));
    if (chunk == NULL)
        return NULL;
    *chunk = (struct fb_chunk) { .kind = kind, .p = (uint8_t *)p, .end = (uint8_t *)p + n };
    return chunk;
}

static void give_back(struct fb_net *net, struct fb_chunk *chunk)
{
    bool kept = false;

    if (chunk->kind != FB_CHUNK_OWN)
        kept = give_spare(&net->spare_views, &net->spare_view_n, chunk);
    else if ((size_t)(chunk->limit - chunk->data) == FB_CHUNK_ROOM)
        kept = give_spare(&net->spare_chunks, &net->spare_chunk_n, chunk);
    if (!kept)
        fb_memory_release(net->memory, chunk);
}

void fb_chunk_free(struct fb_net *net, struct fb_chunk *chunk)
{
    if (chunk->kind == FB_CHUNK_REF) { /* perhaps within a call, which runs no callback */
        chunk->next = net->dropped;
        net->dropped = chunk;
        return;
    }
    if (chunk->kind == FB_CHUNK_FILE)
        close(chunk->file.fd);
    give_back(net, chunk);
}

/* In the order in which they were dropped. */
static struct fb_chunk *take_dropped(struct fb_net *net)
{
    struct fb_chunk *all = NULL, *chunk;

    while ((chunk = net->dropped) != NULL) {
        net->dropped = chunk->next;
        chunk->next = all;
        all = chunk;
    }
    return all;
}

void fb_chunks_tell(struct fb_net *net)
{
    struct fb_chunk *all, *chunk;

    while ((all = take_dropped(net)) != NULL)
        while ((chunk = all) != NULL) {
            void (*release)(void *arg) = chunk->ref.release;
            void *arg = chunk->ref.arg;

            all = chunk->next;
            give_back(net, chunk);
            fb_heartbeat_begin(net->heartbeat, FB_CALLBACK_RELEASE, FB_NO_PROTOCOL);
            release(arg);
            fb_heartbeat_end(net->heartbeat);
        }
}

#define ALIGNMENT 16

void *fb_net_alloc(struct fb_net *net, struct fb_chunk **arena, size_t n)
{
    struct fb_chunk *chunk = *arena;
    uint8_t *p;

    if (n > SIZE_MAX / 2)
        return NULL;
    n = (n + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (chunk == NULL || fb_chunk_room(chunk) < n) {
        chunk = fb_chunk_create(net, n + ALIGNMENT);
        if (chunk == NULL)
            return NULL;
        chunk->end += -(uintptr_t)chunk->end & (ALIGNMENT - 1);
        chunk->next = *arena;
        *arena = chunk;
    }
    p = chunk->end;
    chunk->end += n;
    return p;
}

void fb_net_release(struct fb_net *net, struct fb_chunk **arena)
{
    struct fb_chunk *chunk;

    while ((chunk = *arena) != NULL) {
        *arena = chunk->next;
        fb_chunk_free(net, chunk);
    }
}

void fb_chunks_trim(struct fb_net *net)
{
    struct fb_chunk *chunk;

    while ((chunk = take_spare(&net->spare_chunks, &net->spare_chunk_n)) != NULL)
        fb_memory_release(net->memory, chunk);
    while ((chunk = take_spare(&net->spare_views, &net->spare_view_n)) != NULL)
        fb_memory_release(net->memory, chunk);
}

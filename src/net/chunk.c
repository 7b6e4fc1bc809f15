/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/conn_private.h"

#include <stdlib.h>

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
        chunk = malloc(sizeof(*chunk) + room);
    if (chunk == NULL)
        return NULL;
    chunk->next = NULL;
    chunk->p = chunk->end = chunk->data;
    chunk->limit = chunk->data + room;
    return chunk;
}

struct fb_chunk *fb_chunk_view(struct fb_net *net, const uint8_t *p, size_t n)
{
    struct fb_chunk *chunk = take_spare(&net->spare_views, &net->spare_view_n);

    if (chunk == NULL)
        chunk = malloc(sizeof(*chunk));
    if (chunk == NULL)
        return NULL;
    *chunk = (struct fb_chunk) { .p = (uint8_t *)p, .end = (uint8_t *)p + n };
    return chunk;
}

void fb_chunk_free(struct fb_net *net, struct fb_chunk *chunk)
{
    bool kept = false;

    if (chunk->limit == NULL)
        kept = give_spare(&net->spare_views, &net->spare_view_n, chunk);
    else if ((size_t)(chunk->limit - chunk->data) == FB_CHUNK_ROOM)
        kept = give_spare(&net->spare_chunks, &net->spare_chunk_n, chunk);
    if (!kept)
        free(chunk);
}

void fb_chunks_trim(struct fb_net *net)
{
    struct fb_chunk *chunk;

    while ((chunk = take_spare(&net->spare_chunks, &net->spare_chunk_n)) != NULL)
        free(chunk);
    while ((chunk = take_spare(&net->spare_views, &net->spare_view_n)) != NULL)
        free(chunk);
}

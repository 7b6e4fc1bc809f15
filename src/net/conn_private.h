/* SPDX-License-Identifier: BSD-2-Clause */
/* What conn.c, input.c, output.c and chunk.c share. */
#pragma once

#include "net/conn.h"

/* Output above the first mark stops reading; below the second it goes on. */
#define FB_HIGH_WATER (64 * 1024)
#define FB_LOW_WATER (16 * 1024)

/* Bytes in a row: in memory of its own, or (a view) in memory of the input that is lent just now. */
struct fb_chunk {
    struct fb_chunk *next;
    uint8_t *p;     /* the first byte that counts */
    uint8_t *end;   /* behind the last */
    uint8_t *limit; /* behind the room; NULL for a view */
    uint8_t data[];
};

/* A chunk's usual room, so that header and data fill a page. */
#define FB_CHUNK_ROOM (4096 - sizeof(struct fb_chunk))

/* NULL without memory. */
struct fb_chunk *fb_chunk_create(struct fb_net *net, size_t room);
struct fb_chunk *fb_chunk_view(struct fb_net *net, const uint8_t *p, size_t n);
void fb_chunk_free(struct fb_net *net, struct fb_chunk *chunk);
void fb_chunks_trim(struct fb_net *net); /* frees the spare ones */

static inline size_t fb_chunk_length(const struct fb_chunk *chunk)
{
    return (size_t)(chunk->end - chunk->p);
}

static inline size_t fb_chunk_room(const struct fb_chunk *chunk)
{
    return (size_t)(chunk->limit - chunk->end);
}

/* run[FB_READ] and run[FB_WRITE] of a connection. */
void fb_conn_readable(struct fb_loop *loop, struct fb_source *source);
void fb_conn_progress(struct fb_loop *loop, struct fb_source *source);

/* Whether more input may be received and given to the owner. */
static inline bool fb_conn_may_read(const struct fb_conn *conn)
{
    return !conn->stopped && !conn->held && !conn->eof && !conn->closing && conn->failed == 0;
}
/* Watches or pauses reading as fb_conn_may_read() says. */
void fb_conn_update_reading(struct fb_conn *conn);
/* Has it settled after the callback that runs now. */
void fb_conn_touch(struct fb_conn *conn);
/* Counts it as what it does now. */
void fb_conn_count(struct fb_conn *conn);

/* Sends; false: it broke and has been failed. */
bool fb_conn_flush(struct fb_conn *conn);
void fb_conn_drop_output(struct fb_conn *conn);
/* The reason that an errno of the connection stands for. */
fb_reason fb_conn_reason(int error);

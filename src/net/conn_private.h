/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of connections share. */
#pragma once

#include "net/conn.h"

/* Output above the first mark stops reading; below the second it goes on. */
#define FB_HIGH_WATER (64 * 1024)
#define FB_LOW_WATER (16 * 1024)

enum fb_chunk_kind {
    FB_CHUNK_OWN,  /* bytes in memory of its own */
    FB_CHUNK_VIEW, /* ... in the input that is lent just now */
    FB_CHUNK_REF,  /* ... in memory of the owner's, who is told when they are no more needed */
    FB_CHUNK_FILE, /* ... in a file */
};

/* Bytes in a row. */
struct fb_chunk {
    struct fb_chunk *next;
    uint8_t *p;     /* the first byte that counts */
    uint8_t *end;   /* behind the last */
    uint8_t *limit; /* FB_CHUNK_OWN: behind the room */
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
    enum fb_chunk_kind kind;
    uint8_t data[];
};

/* A chunk's usual room, so that header and data fill a page. */
#define FB_CHUNK_ROOM (4096 - sizeof(struct fb_chunk))

/* NULL without memory. */
struct fb_chunk *fb_chunk_create(struct fb_net *net, size_t room);
/* One without room, of another kind. */
struct fb_chunk *fb_chunk_foreign(
    struct fb_net *net, enum fb_chunk_kind kind, const uint8_t *p, size_t n);
/* A REF's owner is told by fb_chunks_tell(). */
void fb_chunk_free(struct fb_net *net, struct fb_chunk *chunk);
void fb_chunks_tell(struct fb_net *net);
void fb_chunks_trim(struct fb_net *net); /* frees the spare ones */

static inline size_t fb_chunk_length(const struct fb_chunk *chunk)
{
    return chunk->kind == FB_CHUNK_FILE ? chunk->file.left : (size_t)(chunk->end - chunk->p);
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
    return !conn->stopped && !conn->held && !conn->eof && !conn->closing && !conn->connecting &&
           conn->failed == 0;
}
/* Watches or pauses reading as fb_conn_may_read() says. */
void fb_conn_update_reading(struct fb_conn *conn);
/* Has it settled after the callback that runs now. */
void fb_conn_touch(struct fb_conn *conn);
/* Counts it as what it does now. */
void fb_conn_count(struct fb_conn *conn);

/* Whether it takes output. */
static inline bool fb_conn_may_write(const struct fb_conn *conn)
{
    return !conn->closing && !conn->shutting && conn->failed == 0;
}

/* Sends; false: it broke and has been failed. */
bool fb_conn_send(struct fb_conn *conn);
/* What stays unsent moves out of the lent input, which ends with the callback; false as above. */
bool fb_conn_own_output(struct fb_conn *conn);
/* It is connected: `opened` will run. */
void fb_conn_established(struct fb_conn *conn);
void fb_conn_drop_output(struct fb_conn *conn);
/* The reason that an errno of the connection stands for. */
fb_reason fb_conn_reason(int error);

/* A slot and what all connections begin with; NULL when worker_connections are in use. */
struct fb_conn *fb_conn_take(
    struct fb_net *net, const struct sockaddr *peer, const struct fb_conn_ops *ops, void *owner);

/* Pipes (pipe.c): readable, instead of receiving into this process; false: it is to be copied. */
bool fb_pipe_readable(struct fb_conn *conn);
/* Output has left, or more can. */
void fb_pipe_progress(struct fb_conn *conn);
/* Whether nothing that was received for it waits to be sent. */
bool fb_pipe_is_empty(const struct fb_conn *conn);
/* Whether both of its directions have ended. */
bool fb_pipe_is_done(const struct fb_conn *conn);
void fb_pipes_trim(struct fb_net *net);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connections piped together, as conn_pipe.c and conn_splice.c know them. A direction is named
 * by the end that its bytes come from. */
#pragma once

#include "base/check.h"
#include "net/conn_private.h"

#define CONN_PIPE_KIND KIND('P', 'I', 'P', 'E')

/* Bytes after which a direction is spliced instead of copied. */
#define CONN_PIPE_COPIED_MOST ((size_t)256 * 1024)

struct conn_direction {
    struct pipe_ends kernel; /* the kernel's pipe; -1: none, and then `buffered` is 0 */
    size_t buffered;         /* bytes in it */
    size_t copied;           /* bytes copied since the direction last began to copy */
    unsigned little;         /* times in a row that little was spliced */
};

struct conn_pipe_end {
    struct conn_pipe *whole;
    struct conn_pipe_end *other;
    struct fb_conn *conn;       /* NULL: it has ended */
    const struct conn_ops *ops; /* the owner's */
    struct conn_direction from; /* what it receives */
};

struct conn_pipe {
    unsigned kind;
    struct net *net;
    struct conn_pipe_end ends[2];
    uint64_t timeout;        /* ms without a byte moved; 0: none */
    uint64_t ended_moved_ms; /* the moved_ms of the end that has ended */
    struct fb_conn *timed;   /* the end whose deadline the timeout has, or NULL */
    uint64_t connect_by;     /* ms: by when `timed` has to be connected; UINT64_MAX: at any time */
};

static inline struct conn_pipe *conn_pipe_of(const struct fb_conn *conn)
{
    assert(conn->pipe->conn == conn);
    return conn->pipe->whole;
}

static inline struct fb_conn *conn_pipe_other(const struct fb_conn *conn)
{
    return conn->pipe->other->conn;
}

static inline struct conn_direction *conn_direction_from(const struct fb_conn *conn)
{
    return &conn->pipe->from;
}

static inline struct conn_direction *conn_direction_to(const struct fb_conn *conn)
{
    return &conn->pipe->other->from;
}

/* Whether a deadline of a piped connection may be that of its connect(). */
static inline bool conn_pipe_is_unopened(const struct fb_conn *conn)
{
    return conn->phase == CONN_OPENING || conn_is_connecting(conn);
}

/* Whether output of a connection leaves as if there were no pipe: its other end is read, and holds
 * nothing back for it. */
static inline bool conn_pipe_flows(const struct fb_conn *to)
{
    const struct fb_conn *from = conn_pipe_other(to);

    return from != NULL && from->read == CONN_READ_ON && conn_direction_to(to)->buffered == 0;
}

/* conn_splice.c: Gives the kernel's pipe of a direction back; bytes in it are lost. */
void conn_splice_release(struct net *net, struct conn_direction *direction);

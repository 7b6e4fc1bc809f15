/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of a pipe, two connections as ends and two directions, named by the sending end; and
 * bytes of a direction, moved straight, within the kernel, or at a rate. */
#pragma once

#include "base/check.h"
#include "net/conn.h"

#define CONN_PIPE_KIND KIND('P', 'I', 'P', 'E')

/* Bytes after which a direction is spliced. */
#define CONN_PIPE_COPIED_MOST ((size_t)256 * 1024)

struct conn_direction {
    struct pipe_ends kernel; /* the kernel's pipe; -1: none, and then `buffered` is 0 */
    uint32_t buffered;       /* bytes in it */
    uint16_t most;           /* bytes received at once while copying; 0: any */
    uint8_t little;          /* consecutive splices of few bytes */
    bool splices : 1;        /* bytes move within the kernel, if possible */
    bool broken : 1;         /* a send has found a reset; bytes from before are received */
    uint8_t index : 1;       /* number of the end in the pipe */
    uint64_t look_at;        /* received bytes at which more is to be done than to copy */
};

struct conn_pipe_end {
    struct fb_conn *conn; /* NULL: it has ended */
    union {
        const struct conn_ops *ops; /* the owner's */
        uint64_t ended_moved_ms;    /* last moved_ms of an ended connection */
    };
    struct conn_direction from; /* what it receives */
};

/* Whether the remaining end of a pipe is to be reset, after the break of the other end. */
enum conn_pipe_reset {
    CONN_PIPE_RESETS_NOT,
    CONN_PIPE_RESETS,      /* when its output has left */
    CONN_PIPE_AWAITS_QUEUE /* when the kernel's queue is empty, too, or at `reset_by` */
};

/* The rate of a direction. The timer is set while reading waits. */
struct conn_throttle {
    struct timer timer;
    struct conn_pipe_end *end;
    uint64_t rate;   /* bytes a second; 0: any */
    uint64_t before; /* bytes that were received before the pipe */
};

struct conn_limits {
    struct conn_throttle from[2]; /* of the ends */
    uint64_t began_ms;
};

struct conn_pipe {
    unsigned kind;
    bool ends_together : 1; /* after the FIN of either peer, when the bytes before are delivered */
    bool b_break_ends : 1;  /* a break of the second end ends the first as the end of a half does */
    bool awaits_first : 1;  /* the first byte of the second end's peer, of which its owner hears */
    int8_t timed;           /* index of the end with the timeout as deadline; CONN_PIPE_UNTIMED */
    uint8_t reset;          /* enum conn_pipe_reset */
    struct conn_pipe_end ends[2];
    struct conn_limits *limits; /* or NULL */
    conn_first_byte first_byte; /* to be called by the owner; or NULL */
    uint64_t timeout;           /* ms without a byte moved; 0: none */
    union {
        uint64_t connect_by; /* ms: by when `timed` has to be connected; UINT64_MAX: at any time */
        uint64_t reset_by;   /* ms, in CONN_PIPE_AWAITS_QUEUE */
    };
};

/* None of the ends is timed. */
#define CONN_PIPE_UNTIMED (-1)

/* Returns the index of the connection's end. */
static inline int conn_pipe_index(const struct fb_conn *conn)
{
    assert(conn->pipe->conn == conn);
    return conn->pipe->from.index;
}

static inline struct conn_pipe *conn_pipe_of(const struct fb_conn *conn)
{
    return container_of(conn->pipe - conn->pipe->from.index, struct conn_pipe, ends[0]);
}

static inline struct conn_pipe_end *conn_pipe_other_end(const struct fb_conn *conn)
{
    return conn->pipe->from.index == 0 ? conn->pipe + 1 : conn->pipe - 1;
}

static inline struct fb_conn *conn_pipe_other(const struct fb_conn *conn)
{
    return conn_pipe_other_end(conn)->conn;
}

static inline struct conn_direction *conn_direction_to(const struct fb_conn *conn)
{
    return &conn_pipe_other_end(conn)->from;
}

/* Whether the opposite end is read, and holds nothing back: output leaves as without a pipe. */
static inline bool conn_pipe_flows(const struct fb_conn *to)
{
    const struct fb_conn *from = conn_pipe_other(to);

    return from != NULL && from->read == CONN_READ_ON && conn_direction_to(to)->buffered == 0;
}

/* Returns the rate of what the connection receives; NULL: the pipe has no limits. */
static inline struct conn_throttle *conn_throttle_of(const struct fb_conn *conn)
{
    struct conn_pipe *pipe = conn_pipe_of(conn);

    return pipe->limits != NULL ? &pipe->limits->from[conn_pipe_index(conn)] : NULL;
}

/* Whether reading waits for the rate. */
static inline bool conn_throttle_waits(const struct fb_conn *conn)
{
    const struct conn_throttle *throttle = conn_throttle_of(conn);

    return throttle != NULL && timer_is_set(&throttle->timer);
}

/* Whether no byte for the connection waits in the kernel's pipe; true without a pipe. */
static inline bool conn_pipe_is_empty(const struct fb_conn *conn)
{
    return conn->pipe == NULL || conn_direction_to(conn)->buffered == 0;
}

/* Notes whether input of a direction is to be received as by any connection. */
static inline void conn_pipe_set_splices(struct fb_conn *conn, bool splices)
{
    conn->pipe->from.splices = splices;
    conn->by_pipe = splices || conn_pipe_of(conn)->limits != NULL;
}

/* Sends received bytes at once, if none wait before; returns how many. `data` gets the rest. */
size_t conn_direction_pass(struct fb_conn *conn, struct io_span in);
/* Moves input of a piped connection within the kernel; false: it is to be copied. */
bool conn_direction_splice(struct fb_conn *conn);
/* Goes on after a flush has sent output, or may; an ending half ends when empty. */
void conn_direction_progress(struct fb_conn *conn);
/* Returns how many of `most` bytes the rate lets a piped connection receive now, at least 1. */
size_t conn_direction_room(const struct fb_conn *conn, size_t most);
/* Stops reading where the rate asks for it, when n bytes were received. */
void conn_direction_note(struct fb_conn *conn, size_t n);
/* Fails a connection at its end after a reset that a send has found; false: there was none. */
bool conn_direction_fail_broken(struct fb_conn *conn);
/* Gives the kernel's pipe back; bytes in it are lost. */
void conn_direction_give_back(struct net *net, struct conn_direction *direction);
static inline void conn_direction_release(struct net *net, struct conn_direction *direction)
{
    if (unlikely(direction->kernel.read != -1))
        conn_direction_give_back(net, direction);
    assert(direction->buffered == 0);
}

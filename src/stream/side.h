/* SPDX-License-Identifier: BSD-2-Clause */
/* What a side of a session has beyond its connection's slot. It is made when it is first needed: a
 * plain client never has one. */
#pragma once

#include "stream/stream.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

struct fb_alarm;

struct fb_side {
    struct fb_conn *conn;

    /* a connection to a server */
    const fb_ops *ops; /* NULL: its protocol's */
    const struct fb_target *target;
    struct fb_side *parent;         /* that it was made for; NULL: it is kept */
    TAILQ_ENTRY(fb_side) sibling;   /* of its parent's children, or of those that are kept */
    TAILQ_HEAD(, fb_side) children; /* connections that were made for this one */
    bool reused;                    /* it had been kept */

    bool own_timeout; /* fb_set_timeout() has said */
    uint64_t timeout, keep_ms;
    LIST_HEAD(, fb_alarm) alarms;
    struct fb_chunk *lasting, *temporary; /* memory */

    /* a frame that is not whole (frame.c) */
    const uint8_t *frame_at; /* where it begins in the input that is lent; NULL: at its beginning */
    size_t frame_most;       /* input that it may be, until it is whole; 0: there is none */
    size_t frame_scanned;    /* of its bytes, those known not to hold the delimiter */
    uint64_t frame_delimiter; /* a hash of it */
    uint64_t frame_timeout;
    struct fb_timer frame_timer;

    /* messages */
    RB_ENTRY(fb_side) named;
    uint64_t name; /* 0: nobody has asked for its reference */
    unsigned unanswered;
};

static inline struct fb_side *fb_side_of(const struct fb_conn *conn)
{
    return conn->side;
}

static inline struct fb_binding *fb_binding_of(const struct fb_conn *conn)
{
    return conn->owner;
}

/* One of no connection yet; NULL without memory. */
struct fb_side *fb_side_create(struct fb_net *net);
/* Makes it where there is none; NULL without memory, and then the connection has been failed. */
struct fb_side *fb_side_make(struct fb_conn *conn);
/* Gives back all that has to do with its user, and what is left of children. */
void fb_side_clear(struct fb_side *side);
/* At its connection's end. */
void fb_side_free(struct fb_conn *conn);

/* Whether the operations have one: what was built with an older header has fewer. */
#define FB_HAS(ops, member) ((ops)->size > offsetof(fb_ops, member) && (ops)->member != NULL)

static inline const fb_ops *fb_ops_of(const struct fb_conn *conn)
{
    const struct fb_side *side = fb_side_of(conn);

    return side != NULL && side->ops != NULL ? side->ops
                                             : fb_binding_of(conn)->server->protocol->ops;
}

/* Before and after a callback, so that the master can say in which one we got stuck. */
static inline void fb_callback_begin(const struct fb_conn *conn, enum fb_callback callback)
{
    fb_heartbeat_begin(conn->net->heartbeat, callback, fb_binding_of(conn)->server->protocol_index);
}

static inline void fb_callback_end(const struct fb_conn *conn)
{
    fb_heartbeat_end(conn->net->heartbeat);
}

/* Timers of protocols (side.c) */
void fb_session_alarm(struct fb_conn *conn, uint32_t id, uint64_t ms);
void fb_session_alarm_cancel(struct fb_conn *conn, uint32_t id);

/* Time limits (session.c) */
void fb_session_set_timeout(struct fb_conn *conn, uint64_t ms);

/* Connections to servers (upstream.c) */
struct fb_conn *fb_session_connect(
    struct fb_conn *owner, const struct fb_target *target, const fb_ops *ops, void *state);
void fb_session_keep(struct fb_conn *conn, uint64_t ms);
/* fb_conn_ops.kept */
void fb_session_kept(struct fb_conn *conn);
void fb_session_end_children(struct fb_side *side);
/* Nobody uses it just now. */
static inline bool fb_session_is_kept(const struct fb_conn *conn)
{
    return conn->outgoing && fb_side_of(conn) != NULL && fb_side_of(conn)->parent == NULL;
}

/* Frames (frame.c): what `data` has consumed is known now; no frame will be whole any more. */
void fb_frame_consumed(struct fb_side *side, const uint8_t *at);
void fb_frame_forget(struct fb_side *side);

/* References */
uint64_t fb_session_name(struct fb_conn *conn);
struct fb_conn *fb_session_find(struct fb_stream *stream, uint64_t name);

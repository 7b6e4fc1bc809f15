/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS that begins within a session, in either role, on a connection that a protocol already has:
 * SESSION_SECURING. After STARTTLS of a client, and before `opened` of a connection to a server.
 *
 * Responsible for the order of bytes: output from before the begin leaves in plain, output since
 * the begin is kept and sent by the layer, and all input behind the begin is the engine's, never
 * the protocol's. conn->state stays the protocol's, and so do timers, messages, resolutions and the
 * drain; a stop, a resume and the end of our half have their effect behind the handshake. A close
 * drops what is kept. Invariant: conn->ops are those of the session_secure in SESSION_SECURING, and
 * never else. */
#pragma once

#include "session/handshake.h"
#include "session/stats.h"
#include "tls/hello.h"

#define SESSION_SECURE_KIND KIND('S', 'S', 'E', 'C')

struct session_secure_options {
    struct tls_start start;
    /* Adds to the start what depends on the peer's first bytes: 1; 0: more of them are needed, -1:
     * no handshake can begin. NULL: nothing does. */
    int (*prepare)(
        struct fb_conn *conn, struct tls_hello *hello, fb_bytes in, struct tls_start *start);
    uint64_t timeout; /* ms from the begin */
    fb_bytes before;  /* sent in plain, behind output from before the begin; lent */
    /* The layer is on the connection, which is the protocol's as before, in SESSION_ACTIVE; one
     * whose `opened` has not run is in SESSION_NEW, without a deadline. `reply` is valid until the
     * return. The caller verifies the peer, and may end the connection. */
    void (*done)(struct fb_conn *conn, const struct tls_reply *reply);
};

/* The phase of a connection in SESSION_SECURING. */
struct session_secure {
    unsigned kind;
    struct conn_ops ops; /* the connection's */
    struct session_handshake core;
    struct session_secure_options options;
    struct tls_hello hello;         /* for options.prepare */
    uint64_t since;                 /* monotonic ms */
    uint64_t received, sent;        /* the session's own bytes; `received` since `heard` */
    struct session_stats_mark mark; /* of the begin */
    struct chunk *out;              /* written by the protocol since the begin, as conn->out */
    size_t unsent;                  /* bytes in `out` */
    uint8_t reason; /* fb_reason of a connection that closes without a handshake; 0 */
    bool opens;     /* `opened` has not run */
    bool awaits;    /* the connect has not been answered */
    bool heard;     /* input was offered since the begin */
    bool stopped;   /* the protocol wants no input */
    bool shuts;     /* the protocol has ended our half */
};

/* Whether a handshake that the session has begun is under way, or its connection closes. */
static inline bool session_is_securing(const struct fb_conn *conn)
{
    return conn->session_phase == SESSION_SECURING;
}

static inline struct session_secure *session_secure_of(const struct fb_conn *conn)
{
    struct session_secure *secure =
        container_of((struct conn_ops *)conn->ops, struct session_secure, ops);

    assert(session_is_securing(conn));
    CHECK_KIND(secure, SESSION_SECURE_KIND);
    return secure;
}

/* Whether the protocol has not heard of the connection, for the handshake. */
static inline bool session_secure_opens(const struct fb_conn *conn)
{
    return session_is_securing(conn) && session_secure_of(conn)->opens;
}

/* Whether the handshake has begun: the connection is established. */
static inline bool session_is_handshaking(const struct fb_conn *conn)
{
    return session_is_securing(conn) && !session_secure_of(conn)->awaits;
}

/* Whether TLS can begin: an open connection with both halves, without TLS and without a pipe. */
bool session_secure_is_possible(const struct fb_conn *conn);
/* Begins TLS on such a connection, whose `opened` has run; -1 without memory, and nothing has
 * changed. `options` is copied. The end without a handshake is `closed`, with FB_TLS_FAILED, with
 * FB_TLS_TIMED_OUT, or as of any connection. */
int session_secure_begin(struct fb_conn *conn, const struct session_secure_options *options);
/* Begins TLS on a new connection to a server when its connect is answered; -1 as above. All output
 * is kept for the layer. After a take-over of an idle connection with TLS there is no handshake,
 * and `done` is not called. */
int session_secure_await(struct fb_conn *conn, const struct session_secure_options *options);

/* Surround calls that add output, which is kept behind what was kept before. False: the protocol
 * has ended our half, or the connection has failed; nothing may be added. */
bool session_secure_write_begin(struct fb_conn *conn);
void session_secure_write_end(struct fb_conn *conn);

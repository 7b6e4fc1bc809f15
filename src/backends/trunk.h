/* SPDX-License-Identifier: BSD-2-Clause */
/* Trunks: interchangeable connections of a worker to a target, with equal operations, key and
 * options of sockets: any connection may serve the next user.
 *
 * Responsible for the limit of connections, for the idle connections, and for the queue. Never
 * connects. Invariant: a trunk lives as long as any connection in the trunk, waiting connections
 * included; conn_n counts the connections that do not wait. */
#pragma once

#include "net/address_parse.h"
#include "session/conn.h"

struct trunk {
    unsigned kind;
    RB_ENTRY(trunk) node;
    /* common to the connections */
    struct fb_target target;
    const fb_ops *ops;
    struct address local; /* length 0: the kernel's choice */
    int receive_buffer;
    uint32_t flags;                   /* FB_CONNECT_... for the sockets */
    const struct fb_tls_profile *tls; /* NULL: without TLS */
    /* the latest options */
    uint32_t limit, queue; /* limits of connections (0: none) and of waiting connections */
    uint64_t age;          /* limit (ms) of a kept connection's age; 0: no limit */
    uint64_t timeout;      /* ms for the server's answer, and again for the TLS handshake */

    uint32_t conn_n, waiting_n;
    bool held;                                     /* from trunk_get() to trunk_drop() */
    TAILQ_HEAD(trunk_list, session_reuse) waiting; /* the first in front */
    struct trunk_list idle;                        /* the latest use in front */
    /* common as well, behind one another in `bytes`: the caller's key, the server's name for TLS,
     * the names of certificates, and what is sent before the handshake */
    size_t key_n, name_n, paths_n, before_n;
    uint8_t bytes[];
};

/* What options become before a trunk is looked for: values of variables, and defaults. */
struct trunk_wish {
    const struct fb_target *target;
    const fb_ops *ops;
    const fb_connect_options *options;
    fb_bytes tls_name;  /* TLS_NAME_MOST bytes at most */
    fb_bytes tls_paths; /* as of struct tls_start */
    uint64_t timeout;   /* ms */
};

/* Flags of fb_connect_options that sockets are given. */
#define TRUNK_FLAGS (FB_CONNECT_TRANSPARENT | FB_CONNECT_TCP_KEEPALIVE)

/* Returns the trunk of the options, until trunk_drop() at least; NULL without memory. */
struct trunk *trunk_get(struct stream *stream, const struct trunk_wish *wish);

/* The server's name, the names of certificates, and the bytes before the handshake. */
static inline fb_bytes trunk_name(const struct trunk *trunk)
{
    return (fb_bytes) { trunk->bytes + trunk->key_n, trunk->name_n };
}

static inline fb_bytes trunk_paths(const struct trunk *trunk)
{
    return (fb_bytes) { trunk->bytes + trunk->key_n + trunk->name_n, trunk->paths_n };
}

static inline fb_bytes trunk_before(const struct trunk *trunk)
{
    return (fb_bytes) { trunk_paths(trunk).p + trunk->paths_n, trunk->before_n };
}

/* Lets go of a trunk, and frees a trunk without connections. */
void trunk_drop(struct stream *stream, struct trunk *trunk);

/* Whether a new connection has to wait, because as many as may be are there, or others wait. */
bool trunk_is_full(const struct trunk *trunk);
/* Counts a connection, and removes a waiting connection from the queue. */
void trunk_enter(struct session_reuse *reuse, struct trunk *trunk);
/* Puts a connection at the end of the queue; `limit` is reached. */
void trunk_wait(struct session_reuse *reuse, struct trunk *trunk);
/* Takes an ending or leaving connection out of the trunk. */
void trunk_leave(struct stream *stream, struct session_reuse *reuse);
/* Add an idle connection, and remove it. */
void trunk_put(struct session_reuse *reuse);
void trunk_take(struct session_reuse *reuse);
/* Lets the first waiting connection look for a connection, if there may be any. */
void trunk_wake(struct trunk *trunk);
/* Fills in the options of the trunk's sockets before connect(); NULL: no options. */
struct io_connect *trunk_options(const struct trunk *trunk, struct io_connect *options);
/* Whether the connection is too old to be kept. */
bool trunk_is_old(const struct fb_conn *conn, const struct trunk *trunk);
/* Asserts what holds of all trunks. */
void trunk_check_all(const struct stream *stream);

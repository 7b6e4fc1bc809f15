/* SPDX-License-Identifier: BSD-2-Clause */
/* Goes with a connection to a server from one of its users to the next: its trunk, a pointer that
 * was attached to it, the callbacks of its connect. Made when first needed.
 *
 * Never looks at what was attached. Its release runs from the loop, once, after the last user's
 * `closed`. Invariant: the connection is an outgoing one. */
#pragma once

#include "session/conn.h"

struct trunk;

struct session_reuse {
    struct session_conn *session;
    struct trunk *trunk;              /* a group of connections that are alike (trunk.c), or NULL */
    TAILQ_ENTRY(session_reuse) alike; /* among those of the trunk that wait, or are idle */
    struct chunk *attached;           /* fb_attach()'s, or NULL */
    const fb_ops *first_ops;          /* NULL: it has those of its connect */
};

/* Returns the session's, created where there is none; NULL without memory. */
struct session_reuse *session_reuse_make(struct stream *stream, struct session_conn *session);
/* Frees the session's, which has one. */
void session_reuse_free(struct stream *stream, struct session_conn *session);

/* Returns what a connection to a server has of it, or NULL. */
static inline struct session_reuse *session_reuse_of(const struct session_conn *session)
{
    return session_outgoing_of(session)->reuse;
}

/* Returns the trunk of a connection to a server, or NULL. */
static inline struct trunk *session_trunk_of(const struct session_conn *session)
{
    const struct session_reuse *reuse = session_reuse_of(session);

    return reuse != NULL ? reuse->trunk : NULL;
}

/* fb_attach() and fb_attached() */
int session_attach(struct fb_conn *conn, void *p, void (*release)(void *p));
void *session_attached(const struct fb_conn *conn);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The record of a session, at its root: values of variables, limits that it was counted for, its
 * lifetime, what its connections to servers have moved. Made when first needed.
 *
 * Responsible for giving that back when the session ends. Invariant: a session_record belongs to
 * one session_conn, which no other has made: a client's, or the worker's own. */
#pragma once

#include "stream/session_conn.h"

#define SESSION_RECORD_KIND KIND('S', 'R', 'E', 'C')

struct captures;
struct limit_held;
struct session_lifetime;
struct session_passage;
struct session_preread;
struct session_proxy;
struct value;

struct session_record {
    unsigned kind;
    uint8_t limit_status;              /* enum limit_status */
    uint8_t variable_depth;            /* variables that are being worked out for each other */
    uint32_t chain;                    /* chain.c's; 0: the client is not known to be our own */
    struct chunk *kept;                /* memory of session_keep() */
    struct value *values;              /* by variables' indexes; NULL: none is known */
    const struct session_proxy *proxy; /* the PROXY header it began with; NULL: none is kept */
    struct session_preread *preread;   /* what its first bytes say; NULL: nobody asks */
    const struct captures *captures;   /* by the last regular expression that matched */
    struct session_passage *passage;   /* from server to server, or NULL */
    struct session_lifetime *lifetime; /* session_lifetime.c; NULL: any */
    struct limit_held *limits;         /* limits that the session was counted for */
    /* the call of who waits for the choice of a server */
    void (*chosen)(fb_conn *client, void *state, fb_choice choice, const fb_try *run);
    uint64_t more_received, more_sent; /* bytes that the protocol has added for the log */
    /* the connections that were made for it, and what they had moved when they ended; counted where
     * a log takes that */
    uint64_t server_n, from_servers, to_servers;
};

/* Returns NULL where the connection has none. */
static inline struct session_record *session_record_of(const struct fb_conn *conn)
{
    const struct session_conn *session = session_conn_of(conn);

    if (session == NULL || session->is_child || session->known == NULL)
        return NULL;
    CHECK_KIND(session->known, SESSION_RECORD_KIND);
    return session->known;
}

/* Returns the session's, created where there is none; NULL without memory. */
struct session_record *session_record_create(struct session_conn *session);
/* Returns the connection's in the same way, but fails the connection where there is no memory. */
struct session_record *session_record_make(struct fb_conn *conn);
/* Frees the session's, which has one, with all that it holds. */
void session_record_free(struct session_conn *session);
/* Forgets what was found out for one server, before another has the client. */
void session_record_reset(struct session_conn *session);

/* Returns n bytes that last as long as the client's session, aligned for any type; NULL without
 * memory. */
void *session_keep(struct fb_conn *conn, size_t n);

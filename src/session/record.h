/* SPDX-License-Identifier: BSD-2-Clause */
/* The record of a session, at its root: values of variables, limits, the lifetime, bytes of
 * servers. Made when first needed. Invariant: a session_record belongs to one session_conn without
 * a parent: a client's, or the worker's own. */
#pragma once

#include "session/conn.h"

#define SESSION_RECORD_KIND KIND('S', 'R', 'E', 'C')

struct captures;
struct value;

/* State of a room above for a session: the first member of the room's struct. */
struct session_part {
    struct session_part *next;
    const struct session_part_kind *kind;
};

struct session_part_kind {
    /* Forgets a server, before the next server gets the client; NULL: the part ends then. */
    void (*left)(struct session_part *part);
    bool stays; /* kept when the client gets the next server */
    /* Gives back the part's memory beyond the session's; NULL: nothing. */
    void (*ended)(struct fb_conn *conn, struct session_part *part);
};

struct session_record {
    unsigned kind;
    uint8_t variable_depth;          /* nesting of variables in computation */
    uint32_t chain;                  /* chain.c's; 0: the client is not known to be our own */
    struct chunk *kept;              /* memory of session_keep() */
    struct value *values;            /* by variables' indexes; NULL: none is known */
    const struct captures *captures; /* by the last regular expression that matched */
    struct session_part *parts;      /* parts of rooms above, the latest in front */
    const struct address *passed_to; /* last address the client was passed to; NULL: none */
    /* the callback of a session waiting for a server */
    void (*chosen)(fb_conn *client, void *state, fb_choice choice, const fb_try *run);
    uint64_t more_received, more_sent; /* bytes added by the protocol for the log */
    /* number and bytes of ended connections to servers; counted where a log takes level info */
    uint64_t server_n, from_servers, to_servers;
};

/* Returns NULL where the connection has none. */
static inline struct session_record *session_record_of(const struct fb_conn *conn)
{
    const struct session_conn *session = conn->session;

    if (session == NULL || session->is_child || session->known == NULL)
        return NULL;
    CHECK_KIND(session->known, SESSION_RECORD_KIND);
    return session->known;
}

/* Returns the session's, created where there is none; NULL without memory. */
struct session_record *session_record_create(struct session_conn *session);
/* Returns the connection's record likewise, but fails the connection without memory. */
struct session_record *session_record_make(struct fb_conn *conn);
/* Frees the record of a session, with the parts. */
void session_record_free(struct session_conn *session);
/* Forgets values and captures of a server, before the next server has the client. */
void session_record_reset(struct session_conn *session);

/* Returns n aligned bytes with the lifetime of the client's session; NULL without memory. */
void *session_keep(struct fb_conn *conn, size_t n);

/* Makes a part of n bytes, zeroed, in the session's memory; NULL without memory, and then the
 * connection has been failed. session_part_add() adds a part in the room's memory. */
void *session_part_make(struct fb_conn *conn, size_t n, const struct session_part_kind *kind);
void session_part_add(
    struct session_record *record, struct session_part *part, const struct session_part_kind *kind);
/* Returns the room's struct of the kind in the connection's session, or NULL. */
void *session_part_of(const struct fb_conn *conn, const struct session_part_kind *kind);

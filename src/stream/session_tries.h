/* SPDX-License-Identifier: BSD-2-Clause */
/* The tries of a session to be served by a server of a group, as $upstream_... tells of them.
 *
 * Responsible for the memory of tries, which is the session's, and for the end of each. Invariant:
 * the last try alone may run, and it runs as long as the choice has a peer. */
#pragma once

#include "stream/session_record.h"
#include "upstream/choice.h"

struct session_try {
    struct session_try *next;
    const char *address;                             /* the target's text */
    uint64_t connected_ms, first_byte_ms, lasted_ms; /* from the choice on; FB_NO_TIME: never */
    uint64_t sent, received;                         /* bytes to and from the server */
};

/* Called from the loop, once, where a choice waits. */
typedef void session_chosen(fb_conn *client, void *state, fb_choice choice, const fb_try *run);

struct session_tries {
    struct choice choice;
    struct fb_conn *client;
    session_chosen *chosen;   /* NULL: nobody waits */
    fb_try shown;             /* the try that runs, as the protocol sees it */
    bool upstream_ended;      /* the server, and not the client, has ended the session */
    struct session_try *last; /* NULL: none was begun */
    struct session_try first;
};

/* Do what the calls of fb_upstreams promise. */
fb_choice session_tries_choose(struct fb_conn *client, const struct fb_upstream *upstream,
    session_chosen *chosen, const fb_try **out);
void session_tries_connected(struct fb_conn *client);
void session_tries_first_byte(struct fb_conn *client);
void session_tries_end(struct fb_conn *client, const struct fb_conn *server, fb_try_end how);
/* Adds to a log line of a client, or of its connection to a server, what its session is doing. */
void session_tries_describe(const struct fb_conn *conn, struct log_line *line);
/* Ends what the session's end finds running. */
void session_tries_clear(struct session_conn *session);
/* Tells the session of a choice that has waited: the upstreams' tell(). */
void session_tries_tell(struct choice *choice, fb_choice status);
/* The upstreams' keep() and report(). */
void *session_tries_keep(struct choice *choice, size_t n);
void session_tries_report(
    struct choice *choice, enum log_level level, const char *upstream, const char *message);

/* variables_upstream.c */
extern const struct variable_row variables_upstream[];

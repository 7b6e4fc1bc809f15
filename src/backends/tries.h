/* SPDX-License-Identifier: BSD-2-Clause */
/* The tries of a session to be served by a server of a group, as shown by $upstream_...
 *
 * Responsible for the memory of tries, and for the end of every try. A running try is the
 * choice's peer; the end of a try keeps the numbers for the variables. Invariant: one try runs
 * at a time. */
#pragma once

#include "session/end.h"
#include "session/record.h"
#include "text/variable.h"
#include "upstream/choice.h"

/* A try, as it is told of. */
struct session_try {
    struct session_try *next;
    const char *address;                  /* the target's text */
    uint64_t lasted_ms;                   /* from the choice on; FB_NO_TIME: it runs */
    uint64_t sent, received;              /* bytes to and from the server */
    uint32_t connected_ms, first_byte_ms; /* from the choice on; CHOICE_NO_TIME: never */
    uint8_t end; /* enum session_end: how the try has ended the session, or would */
};

/* Called from the loop, once, where a choice waits. */
typedef void session_chosen(fb_conn *client, void *state, fb_choice choice, const fb_try *run);

struct session_tries {
    struct choice choice;
    struct fb_conn *client;
    struct session_try *ended; /* the first of the ended tries; NULL: none */
};

/* Returns the try after `run`, or the first of NULL; *running is filled in with the running try. */
const struct session_try *tries_next(
    const struct session_tries *tries, const struct session_try *run, struct session_try *running);

/* Returns how the last ended try has ended the session, if at all: enum session_end. */
unsigned tries_last_end(const struct session_tries *tries);

/* Do what the calls of fb_upstreams promise. */
fb_choice tries_choose(struct fb_conn *client, const struct fb_upstream *upstream,
    session_chosen *chosen, const fb_try **out);
void tries_end_with_client(struct fb_conn *client);
void tries_connected(struct fb_conn *client);
void tries_first_byte(struct fb_conn *client);
/* Notes the first byte of a client's connection to a server. */
void tries_server_first_byte(struct fb_conn *server);
void tries_end(struct fb_conn *client, const struct fb_conn *server, fb_try_end how);
/* Adds the session's activity to a log line of a client, or of a connection to a server. */
void tries_describe(const struct fb_conn *conn, struct log_line *line);
/* Frees the tries of a client, and ends a running try. */
void tries_clear(struct session_conn *session);
/* Reports a choice to the session after a wait: the upstreams' tell(). */
void tries_tell(struct choice *choice, fb_choice status);
/* The upstreams' report(). */
void tries_report(
    struct choice *choice, enum log_level level, const char *upstream, const char *message);

/* variables.c */
extern const struct variable_row variables_upstream[];

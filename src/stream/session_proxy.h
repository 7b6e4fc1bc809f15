/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that a proxy passes on: what they begin with is a PROXY header, which says who they are.
 *
 * Responsible for the header, from the start of the connection to the session's, and for what it
 * leaves behind: the client's address, where its proxy is believed, and variables. Invariant: the
 * protocol sees nothing of it, neither its bytes nor the time that it took. */
#pragma once

#include "net/conn.h"
#include "stream/variable.h"

/* A session's copy of its header, in its own memory, where a variable is used that tells it. */
struct session_proxy {
    struct conn_peer own; /* the connection's peer */
    size_t n;
    uint8_t header[];
};

/* Enters SESSION_HEADER. */
void session_proxy_await(struct fb_conn *conn);
/* The callbacks of such a connection, until session_begin(). */
size_t session_proxy_data(struct fb_conn *conn, fb_bytes in);
void session_proxy_eof(struct fb_conn *conn, fb_bytes rest);
void session_proxy_expired(struct fb_conn *conn);

/* variables_proxy.c: What is known by a header. */
extern const struct variable_row variables_proxy[];
/* Whether the variable is one of them; and whether there is such a one: its name may have the
 * number of a type. */
bool variables_proxy_has(const struct variable *variable);
bool variables_proxy_knows(const struct variable *variable);

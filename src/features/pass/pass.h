/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that one server hands over to another, and the addresses that they are handed over to.
 *
 * Responsible for finding the server of an address, and for ending the session with the first
 * server when the other's begins. Invariant: a client is handed over before any of its bytes were
 * given to a protocol, and FB_PASSES_MAX times at most. */
#pragma once

#include "net/address.h"
#include "text/template.h"

struct binding;

/* A binding by its address. */
struct binding_place {
    struct binding *binding;
    bool takes_ipv4; /* a wildcard of IPv6 whose socket receives IPv4, too */
};

/* The bindings of a configuration, sorted by their addresses. */
struct binding_list {
    struct binding_place *places;
    unsigned n;
};

/* The SDK's fb_listener: an address of ours. */
struct fb_listener {
    const struct template *text;
    struct address address; /* without a length where the text has variables */
    const struct binding_list *bindings;
};

/* Sorts the list. */
void session_pass_sort(struct binding_list *list);
/* Returns the binding whose server gets the clients of the address; NULL: nobody listens there. */
struct binding *session_pass_find(const struct binding_list *list, const struct address *address);

/* The pass() of fb_stream: 0, or -1 after a line in the log. */
int session_pass(struct fb_conn *conn, const struct fb_listener *listener);
/* Callbacks of a client of a server that may pass it, until it has opened. */
extern const struct conn_ops session_pass_ops;
/* server->begin of such a server. */
void session_pass_begin(struct fb_conn *conn);
/* Whether the client will be passed when its `opened` has returned. */
bool session_pass_is_due(const struct fb_conn *conn);

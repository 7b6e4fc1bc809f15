/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that a server hands over to the next, and the addresses for passing.
 *
 * Responsible for finding the server of an address, and for ending the session with the first
 * server when the next session begins. Invariant: a client is handed over before a protocol has got
 * any of the client's bytes, and FB_PASSES_MAX times at most. */
#pragma once

#include "net/address.h"
#include "text/template.h"

#include <bsd/sys/queue.h>
#include <forkbeard/protocol.h>

struct apply;
struct binding;
struct conf_word;

/* A binding by its address. */
struct binding_place {
    struct binding *binding;
    bool takes_ipv4; /* a wildcard of IPv6 with a socket that receives IPv4, too */
};

/* The bindings of a configuration, sorted by their addresses. */
struct binding_list {
    struct binding_place *places;
    unsigned n;
};

/* Lists all bindings, once the listeners are known; -1 after a report. */
int pass_bindings_list(struct apply *apply, struct binding_list *list);
/* Returns the binding for the clients of the address; NULL: no listener there. */
struct binding *pass_bindings_find(const struct binding_list *list, const struct address *address);

/* The feature's struct of the configuration. */
struct pass_conf {
    STAILQ_HEAD(, pass_use) uses;
};

/* An address that a protocol has asked for. */
struct pass_use {
    STAILQ_ENTRY(pass_use) link;
    struct fb_listener *listener;
    const struct conf_word *word;
    const fb_protocol *protocol;
};

/* Reads an address of ours for a protocol, as fb_conf_listener(); NULL after a report. */
const fb_listener *pass_listener_of_conf(fb_conf *conf, const char *directive, const char *text);

/* The SDK's fb_listener: an address of ours. */
struct fb_listener {
    const struct template *text;
    struct address address; /* without a length where the text has variables */
    const struct binding_list *bindings;
};

/* The pass() of fb_stream: 0, or -1 after a line in the log. */
int pass_client(struct fb_conn *conn, const struct fb_listener *listener);
/* Callbacks of a client until it has opened, where the server may pass clients. */
extern const struct conn_ops pass_conn_ops;
/* server->proceed of such a server. */
void pass_begin_client(struct fb_conn *conn);
/* Whether the client will be passed when its `opened` has returned. */
bool pass_is_due(const struct fb_conn *conn);

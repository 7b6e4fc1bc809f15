/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that a server hands over to the next, and the addresses for passing.
 *
 * Responsible for finding the server of an address, and for ending the session with the first
 * server when the next session begins. Invariant: a client is handed over before a protocol has got
 * any of the client's bytes, and FB_PASSES_MAX times at most. */
#pragma once

#include "features/pass/bindings.h"
#include "text/template.h"

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

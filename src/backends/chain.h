/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains of sessions: a server that leads a client to a listener of the same daemon makes a chain,
 * and a chain back to a listener in the chain is a circle without an end.
 *
 * A chain is a set of bits, for the bindings passed so far. With more than 32 bindings a chain
 * is the number of bindings passed, and a circle if greater than the number of bindings. */
#pragma once

#include "session/stream.h"

/* Begins to note the chains of a worker's connections. */
void chain_init(struct stream *stream, const struct stream_settings *settings, uint32_t generation);
/* Begins a client's session; false: a circle, and the client is closed after a line in the log. */
bool chain_begin(struct fb_conn *conn);
/* Compares the chain of a session that was held up with the server that it has now; as above. */
bool chain_check(struct fb_conn *conn);
/* Notes the chain of a connection begun for the owner, if it goes to a port of ours. */
void chain_note(struct stream *stream, const struct fb_conn *owner, const struct fb_conn *server);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The directives of TLS to servers, declared by a protocol in one row (FB_VALUE_TLS): rows of a
 * feature under the protocol's names, whose values lie behind the protocol's conf_state.
 *
 * Invariant: a protocol without such a declaration, and a build without TLS, have none of it. */
#pragma once

#include "settings/apply.h"

/* Returns the bytes of a server's configuration, which begins with the protocol's conf_state. */
size_t protocol_tls_conf_size(const struct apply *apply, const fb_protocol *protocol);
/* Returns the number of the rows that the declarations of the protocol become. */
size_t protocol_tls_row_n(const struct apply *apply, const fb_protocol *protocol);
/* Appends the rows of a declaration, of which `like` is made; returns the end, or NULL after a
 * report. */
struct setting *protocol_tls_append(
    struct apply *apply, struct setting *end, const struct setting *like);
/* Makes the protocol's values of a server with all its directives. */
void protocol_tls_finish(struct apply *apply, struct scope *server);

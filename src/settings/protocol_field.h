/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a directive of a protocol puts its value. */
#pragma once

#include "settings/apply.h"

/* Returns the field of a protocol's directive in the current server or stream; NULL after a
 * report. */
void *protocol_field(
    struct apply *apply, const struct setting *setting, const struct conf_directive *directive);
/* Returns the place of the protocol among all that the configuration has. */
unsigned protocol_index(const struct apply *apply, const fb_protocol *protocol);
/* Returns a directive of the protocol with the flags, written in the scope, or NULL. */
const struct scope_entry *protocol_seen(
    const struct scope *scope, const fb_protocol *protocol, uint32_t flags);
/* Returns the stream's values of a protocol; NULL if it has no values, or after a report. */
void *protocol_stream_conf(struct apply *apply, struct scope *stream, const fb_protocol *protocol);
/* Returns the path of a protocol's module, or the name of a protocol that has none. */
const char *protocol_module(const struct apply *apply, const fb_protocol *protocol);

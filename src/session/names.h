/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of connections in references. */
#pragma once

#include "session/use.h"

/* A number that stands for the connection in references, of SESSION_NAME_BITS bits
 * and at least SESSION_NAME_LEAST; 0 without memory. */
#define SESSION_NAME_BITS 40
#define SESSION_NAME_LEAST (UINT64_C(1) << 19)
uint64_t session_name(struct fb_conn *conn);
/* Whether some connection has had the name. */
bool session_name_was_given(const struct stream *stream, uint64_t name);
/* Returns the connection of that name, or NULL. */
struct fb_conn *session_find(struct stream *stream, uint64_t name);
void session_name_drop(struct session_use *use);

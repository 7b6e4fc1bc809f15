/* SPDX-License-Identifier: BSD-2-Clause */
/* The longest lifetime of a client's session: `session_lifetime`. Costs a session whose server has
 * none nothing. */
#pragma once

#include "stream/session_conn.h"

/* Handles a phase of a session, by a struct lifetime_setting: its time begins, or has begun with
 * the connection. Returns 0; without memory the connection has failed. */
unsigned session_lifetime_begin(struct fb_conn *conn, const void *setting);
/* Frees the session's, which has one. */
void session_lifetime_clear(struct session_conn *session);
/* Whether the session has been ended for its age. */
bool session_lifetime_has_ended(const struct fb_conn *conn);
/* Whether the callbacks that the session has now have been told so. */
bool session_lifetime_was_told(const struct fb_conn *conn);

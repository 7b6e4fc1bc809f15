/* SPDX-License-Identifier: BSD-2-Clause */
/* The longest lifetime of a client's session: `session_lifetime`. Costs a session whose server has
 * none nothing. */
#pragma once

#include "stream/session_conn.h"

/* Handles a phase of a session, by a struct lifetime_setting: its time begins, or has begun with
 * the connection. Returns 0; without memory the connection has failed. */
unsigned session_lifetime_begin(struct fb_conn *conn, const void *setting);

/* SPDX-License-Identifier: BSD-2-Clause */
/* A session as a row of `forkbeard sessions`. */
#pragma once

#include "base/json.h"

struct fb_conn;

/* Writes the members of a client's session: client, time, protocol, server, bytes, and the awaited
 * event. */
void session_row_write(const struct fb_conn *client, struct json *json);

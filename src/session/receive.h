/* SPDX-License-Identifier: BSD-2-Clause */
/* The time limit of input, and the lowest rate of a client's messages. */
#pragma once

#include "session/use.h"

/* Ends the connection when no input has come for `ms`; 0: never. */
void session_receive_set(struct fb_conn *conn, uint64_t ms);
void session_receive_clear(struct session_use *use);
/* Returns the operations of a connection, neither piped nor held up by a phase. */
const struct conn_ops *session_receive_ops(const struct fb_conn *conn);
/* The lowest rate of a client's messages. */
struct rate_setting {
    int64_t bytes; /* a second; 0: any */
    int64_t grace; /* ms */
};
/* Handles a phase of a session, by a struct rate_setting: from now on messages of the client have
 * to come at that rate. Returns 0; without memory the connection has failed. */
unsigned session_receive_begin_rate(struct fb_conn *conn, const void *setting);

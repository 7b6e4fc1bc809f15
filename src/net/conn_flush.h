/* SPDX-License-Identifier: BSD-2-Clause */
/* The flush of a connection, and the end. */
#pragma once

#include "net/conn.h"

/* Ends the connection at once; not called from the connection's callbacks. */
void conn_end(struct fb_conn *conn, fb_reason reason);

/* ---- For net/ alone ---- */

/* Does what callbacks have asked for, and goes on when the peer has taken output. */
NOINLINE void conn_flush(struct fb_conn *conn);
/* Keeps a closed connection for a new owner, lingers or ends, once the sent output has left. */
void conn_finish_close(struct fb_conn *conn);

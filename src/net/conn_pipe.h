/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connections piped together. */
#pragma once

#include "net/conn.h"

struct conn_pipe_options {
    uint64_t timeout;           /* ms without a byte moved; 0: any */
    uint64_t rates[2];          /* bytes a second to receive from a, and from b; 0: any */
    size_t most;                /* bytes received at once, while copying; 0: any */
    bool ends_together;         /* a FIN of one peer ends both connections */
    bool b_break_ends;          /* a break of b ends `a` like a FIN */
    conn_first_byte first_byte; /* called for the first byte of b's peer; or NULL */
};

/* Pipes two connections, until both have ended; -1 without memory. The owners hear of `closed`, and
 * of b's first byte. */
int conn_pipe(struct fb_conn *a, struct fb_conn *b, const struct conn_pipe_options *options);
/* Returns when a byte last moved at either end of a connection's pipe, monotonic ms. */
uint64_t conn_pipe_moved_ms(const struct fb_conn *conn);
/* For net/ alone: ends both after a peer's end, where the pipe is to end then and nothing is left
 * to send; false: not yet. Not within a callback. */
bool conn_pipe_end_both(struct fb_conn *conn);

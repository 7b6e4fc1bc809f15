/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connections piped together: the input of each is sent to the other, until both have ended. */
#pragma once

#include "net/conn.h"

struct conn_pipe_options {
    uint64_t timeout;           /* ms without a byte moved; 0: any */
    uint64_t rates[2];          /* bytes a second that are received from a, and from b; 0: any */
    size_t most;                /* bytes received at once, while they are copied; 0: any */
    bool ends_together;         /* the end of one peer's half ends both connections */
    bool b_break_ends;          /* a break of b ends `a` as the end of its half does */
    conn_first_byte first_byte; /* called when b's peer has sent the first byte; or NULL */
};

/* Moves the input of each to the other until both have ended; -1 without memory. From now on their
 * owners are called for `closed` alone, and for b's first byte. */
int conn_pipe(struct fb_conn *a, struct fb_conn *b, const struct conn_pipe_options *options);
/* Returns when a byte last moved at either end of a connection's pipe, monotonic ms. */
uint64_t conn_pipe_moved_ms(const struct fb_conn *conn);

/* For net/ alone: ends both, where the connection's peer has ended its half, the pipe is to end
 * then, and nothing has to be sent before; false: not yet. Not within a callback. */
bool conn_pipe_end_both(struct fb_conn *conn);

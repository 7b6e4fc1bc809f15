/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of a pipe's direction, moved straight, within the kernel, or at a rate. */
#pragma once

#include "net/conn_pipe_ends.h"

/* Sends received bytes at once, if none wait before; returns how many. `data` gets the rest. */
size_t conn_direction_pass(struct fb_conn *conn, struct io_span in);
/* Moves input of a piped connection within the kernel; false: it is to be copied. */
bool conn_direction_splice(struct fb_conn *conn);
/* Goes on after a flush has sent output, or may; an ending half ends when empty. */
void conn_direction_progress(struct fb_conn *conn);
/* Returns how many of `most` bytes the rate lets a piped connection receive now, at least 1. */
size_t conn_direction_room(const struct fb_conn *conn, size_t most);
/* Stops reading where the rate asks for it, when n bytes were received. */
void conn_direction_note(struct fb_conn *conn, size_t n);
/* Fails a connection at its end after a reset that a send has found; false: there was none. */
bool conn_direction_fail_broken(struct fb_conn *conn);

/* Gives the kernel's pipe back; bytes in it are lost. */
void conn_direction_give_back(struct net *net, struct conn_direction *direction);
static inline void conn_direction_release(struct net *net, struct conn_direction *direction)
{
    if (unlikely(direction->kernel.read != -1))
        conn_direction_give_back(net, direction);
    assert(direction->buffered == 0);
}

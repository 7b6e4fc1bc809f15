/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of a connection: gathered while a callback runs, and sent by the flush. */
#pragma once

#include "net/conn.h"

/* ---- Calls of owners: without an effect on an inactive connection ---- */

/* Adds to the output: copied, unless within the input lent now. */
void conn_write(struct fb_conn *conn, const void *p, size_t n);
/* Sends from where the bytes lie; release(arg) runs once, from the loop. -1: nothing was taken. */
int conn_write_ref(
    struct fb_conn *conn, const void *p, size_t n, void (*release)(void *arg), void *arg);
/* Sends n bytes of a file, and closes its descriptor afterwards. -1: nothing was taken. */
int conn_write_file(struct fb_conn *conn, int fd, uint64_t offset, uint64_t n);
/* Sends as much as the socket takes now. */
void conn_push(struct fb_conn *conn);

/* ---- For net/ alone ---- */

/* Whether there is output: chunks, or borrowed bytes. */
static inline bool conn_has_output(const struct fb_conn *conn)
{
    return conn->out != NULL || conn->net->borrower == conn;
}

/* Sends from the output and returns true; false: the connection has failed. */
bool conn_send(struct fb_conn *conn);
/* Notes the result of a system call that was offered so many bytes of memory; false as above. */
NOINLINE bool conn_note_sent(struct fb_conn *conn, struct io_result result, size_t offered);
/* Tells the owner of a send's errno; returns whether the connection has failed. Else it sends no
 * more. */
bool conn_send_failed(struct fb_conn *conn, int error);
/* Copies borrowed bytes, valid until the flush; false: the connection has failed. */
bool conn_own_output(struct fb_conn *conn);
void conn_drop_output(struct fb_conn *conn);
/* Whether the unsent memory has reached so many times the owner's limit. */
bool conn_output_is_at(const struct fb_conn *conn, unsigned times);

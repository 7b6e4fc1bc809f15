/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's output calls. They append to the connection's unsent output, and the loop sends it
 * after the callback: none of them runs a callback, and none does anything to a connection that has
 * ended. */
#include "net/conn_output.h"
#include "sdk/handle.h"

void fb_write(fb_conn *conn, const void *p, size_t n)
{
    if (SDK_VALID(conn))
        conn_write(conn, p, n);
}

void fb_writev(fb_conn *conn, const fb_bytes *pieces, size_t n)
{
    if (!SDK_VALID(conn))
        return;
    for (size_t i = 0; i < n; i++)
        conn_write(conn, pieces[i].p, pieces[i].n);
}

int fb_write_ref(fb_conn *conn, const void *p, size_t n, void (*release)(void *arg), void *arg)
{
    return SDK_VALID(conn) ? conn_write_ref(conn, p, n, release, arg) : -1;
}

int fb_send_file(fb_conn *conn, int fd, uint64_t offset, uint64_t n)
{
    return SDK_VALID(conn) ? conn_write_file(conn, fd, offset, n) : -1;
}

void fb_flush(fb_conn *conn)
{
    if (SDK_VALID(conn))
        conn_push(conn);
}

size_t fb_unsent(const fb_conn *conn)
{
    return SDK_VALID(conn) ? conn->unsent : 0;
}

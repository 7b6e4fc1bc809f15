/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on a connection's output, and on files read for a connection. Output is appended
 * to the unsent output, and sent by the loop after the callback. No call runs a callback, waits for
 * a disk unless `aio` is off, or touches an ended connection. */
#include "net/conn_output.h"
#include "process/role.h"
#include "sdk/handle.h"
#include "worker/file_reads.h"

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

/* ---- Files ---- */

int fb_read_file(fb_conn *conn, int fd, uint64_t offset, size_t n,
    void (*done)(fb_conn *conn, void *state, const fb_file_read *read))
{
    assert(role_is(ROLE_WORKER));
    return SDK_VALID(conn) ? file_reads_begin(conn, fd, offset, n, done) : -1;
}

fb_aio fb_aio_of(const fb_conn *conn)
{
    return SDK_VALID(conn) ? file_reads_way(conn) : FB_AIO_OFF;
}

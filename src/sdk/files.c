/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls that read files on behalf of a connection. None of them waits for a disk, unless
 * `aio` is off, and none runs a callback. */
#include "process/role.h"
#include "sdk/handle.h"
#include "worker/file_reads.h"

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

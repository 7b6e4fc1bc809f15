/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernel AIO: reads of files that the kernel carries out while the loop turns, and whose end an
 * eventfd of the loop tells. A file that was not opened with O_DIRECT is read within the call.
 *
 * Responsible for the kernel's context, one a loop. Never queues a request: what exceeds their
 * number is refused. Invariant: a request that was taken is reported once, or has ended when the
 * context was closed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;

/* A read; the caller's, who keeps it until it is reported. */
struct file_aio_request {
    int fd;
    void *p; /* aligned, as n and offset are, to what the device wants */
    size_t n;
    uint64_t offset;
    int64_t result; /* once it has ended: bytes, or a negative errno */
};

/* Whether this build has kernel AIO. */
bool file_aio_built(void);
/* Makes the loop's context for so many requests at once, each of which is reported from the loop
 * when it has ended; -1 with errno, and there is none. */
int file_aio_open(struct loop *loop, unsigned requests,
    void (*ended)(struct loop *loop, struct file_aio_request *request));
/* Gives the read to the kernel; -1 with errno, and it was not taken: EAGAIN where there are too
 * many. */
int file_aio_submit(struct loop *loop, struct file_aio_request *request);
/* Waits until the kernel has ended the requests that it still has, of which none is reported, and
 * closes the context. Does nothing without one. */
void file_aio_close(struct loop *loop);

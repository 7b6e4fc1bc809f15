/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernel AIO: reads of files by the kernel while the loop turns, reported by an eventfd. A file
 * opened without O_DIRECT is read within the call. One context a loop. Never queues a request.
 * Invariant: a taken request is reported once, or has ended when the context was closed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;

/* A read, owned by the caller until reported. */
struct file_aio_request {
    int fd;
    void *p; /* aligned, like n and offset, for the device */
    size_t n;
    uint64_t offset;
    int64_t result; /* when ended: bytes, or a negative errno */
};

/* Whether this build has kernel AIO. */
bool file_aio_built(void);
/* Makes the loop's context for so many requests at once; -1 with errno. */
int file_aio_open(struct loop *loop, unsigned requests,
    void (*ended)(struct loop *loop, struct file_aio_request *request));
/* Gives a read to the kernel; -1 with errno, EAGAIN where there are too many. */
int file_aio_submit(struct loop *loop, struct file_aio_request *request);
/* Waits, without reports, until all requests have ended, and closes the context, if any. */
void file_aio_close(struct loop *loop);

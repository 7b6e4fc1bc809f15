/* SPDX-License-Identifier: BSD-2-Clause */
/* The lack of kernel AIO, in a build without libaio. */
#include "event/file_aio.h"

#include <errno.h>

bool file_aio_built(void)
{
    return false;
}

int file_aio_open(struct loop *loop, unsigned requests,
    void (*ended)(struct loop *loop, struct file_aio_request *request))
{
    (void)loop;
    (void)requests;
    (void)ended;
    errno = ENOSYS;
    return -1;
}

int file_aio_submit(struct loop *loop, struct file_aio_request *request)
{
    (void)loop;
    (void)request;
    errno = ENOSYS;
    return -1;
}

void file_aio_close(struct loop *loop)
{
    (void)loop;
}

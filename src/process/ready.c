/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the one byte. */
#include "process/ready.h"

#include "os/descriptor.h"

#include <errno.h>
#include <unistd.h>

int ready_open(int ends[2])
{
    return descriptor_pipe(ends, 0);
}

void ready_tell(int end, unsigned char code)
{
    if (write(end, &code, 1) == -1)
        errno = 0;
    close(end);
}

int ready_wait(int end)
{
    unsigned char code;
    ssize_t n = read(end, &code, 1);

    close(end);
    return n == 1 ? code : -1;
}

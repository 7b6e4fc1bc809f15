/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory with a descriptor: see memory_file.h. */
#include "os/memory_file.h"

#include "os/descriptor.h"
#include "os/memory.h"

#include <unistd.h>

int memory_file_make(const char *name, size_t size)
{
    int fd = os_segment_create(name);

    if (fd == -1 || (ftruncate(fd, (off_t)size) == 0 && os_segment_seal(fd) == 0))
        return fd;
    descriptor_close(fd); /* keeps errno */
    return -1;
}

int memory_file_read(int fd, void *to, size_t n)
{
    return pread(fd, to, n, 0) == (ssize_t)n ? 0 : -1;
}

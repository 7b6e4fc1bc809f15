/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory by shm_open(), whose name is removed at once. Nothing seals it. */
#include "os/segment_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 1000

const char segment_memory_create_call[] = "shm_open()";
const char segment_memory_seal_call[] = "none";
const char segment_memory_open_call[] = "fcntl(F_DUPFD_CLOEXEC)";

/* The name counts up where somebody else has left it. */
int segment_memory_create(const char *name)
{
    char path[64];
    int fd = -1;

    (void)name;
    for (int i = 0; i < TRIES && fd == -1; i++) {
        snprintf(path, sizeof(path), "/forkbeard.%ld.%d", (long)getpid(), i);
        fd = shm_open(path, O_RDWR | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
        if (fd == -1 && errno != EEXIST)
            return -1;
    }
    if (fd != -1)
        shm_unlink(path);
    return fd;
}

int segment_memory_seal(int fd)
{
    (void)fd;
    return 0;
}

int segment_memory_check(int fd)
{
    (void)fd;
    return 0;
}

int segment_memory_open_read_only(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void segment_memory_release(void *p, size_t n)
{
    (void)p;
    (void)n;
}

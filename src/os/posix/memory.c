/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory by mmap() and shm_open(), without marks and seals, and copies in files of our user. */
#include "os/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Functions without a call of POSIX ignore their parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define SEGMENT_TRIES 1000
#define COPY_FOLDER "/tmp"

static void *map_memory(size_t n, int flags)
{
    void *p;

    assert(n > 0);
    p = mmap(NULL, n, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void *os_memory_reserve(size_t n)
{
    return map_memory(n, MAP_PRIVATE);
}

void *os_memory_reserve_shared(size_t n)
{
    return map_memory(n, MAP_SHARED);
}

void os_memory_trim(void)
{
}

void os_wiped_mark(void *p, size_t n)
{
}

const char os_inherited_call[] = "none";

int os_inherited_never(void *base, size_t size)
{
    return 0;
}

int os_inherited_again(void *base, size_t size)
{
    return 0;
}

void os_inherited_drop(void *base, size_t size)
{
    munmap(base, size);
}

const char os_segment_create_call[] = "shm_open()";
const char os_segment_seal_call[] = "none";
const char os_segment_open_call[] = "fcntl(F_DUPFD_CLOEXEC)";

/* The name is removed at once, and counts up where a killed process has left it. */
int os_segment_create(const char *name)
{
    char path[64];
    int fd = -1;

    for (int i = 0; i < SEGMENT_TRIES && fd == -1; i++) {
        snprintf(path, sizeof(path), "/forkbeard.%ld.%d", (long)getpid(), i);
        fd = shm_open(path, O_RDWR | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
        if (fd == -1 && errno != EEXIST)
            return -1;
    }
    if (fd != -1)
        shm_unlink(path);
    return fd;
}

int os_segment_seal(int fd)
{
    return 0;
}

int os_segment_check(int fd)
{
    return 0;
}

void os_segment_release(void *p, size_t n)
{
}

int os_segment_open_read_only(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* The folder for temporary files, TMPDIR, must allow execution. A killed load leaves the file. */
int os_copy_create(struct os_copy *copy, const char *name)
{
    const char *folder = getenv("TMPDIR");
    int n;

    if (folder == NULL || *folder == '\0')
        folder = COPY_FOLDER;
    *copy = (struct os_copy) { .fd = -1 };
    n = snprintf(copy->path, sizeof(copy->path), "%s/forkbeard.XXXXXX", folder);
    if (n < 0 || (size_t)n >= sizeof(copy->path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    copy->fd = mkstemp(copy->path);
    if (copy->fd == -1)
        return -1;
    fcntl(copy->fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

int os_copy_finish(struct os_copy *copy)
{
    assert(copy->fd != -1);
    return fchmod(copy->fd, S_IRUSR | S_IXUSR);
}

/* The name goes, lest a later copy have the path; a debugger does not find the file. */
int os_copy_keep(struct os_copy *copy)
{
    os_copy_drop(copy);
    return -1;
}

void os_copy_drop(struct os_copy *copy)
{
    if (copy->fd == -1)
        return;
    unlink(copy->path);
    close(copy->fd);
    copy->fd = -1;
}

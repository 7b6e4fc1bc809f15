/* SPDX-License-Identifier: BSD-2-Clause */
/* The copy is a file of our user alone in the directory for temporary files, which TMPDIR may name,
 * and where code may be executed. Its name goes when it is loaded: no later copy has it, and a
 * debugger does not find the file. A process that is killed during the load leaves it. */
#include "os/file_copy.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY "/tmp"

int file_copy_create(struct file_copy *copy, const char *name)
{
    const char *directory = getenv("TMPDIR");
    int n;

    (void)name; /* a long one would make the path too long */
    if (directory == NULL || *directory == '\0')
        directory = DIRECTORY;
    *copy = (struct file_copy) { .fd = -1 };
    n = snprintf(copy->path, sizeof(copy->path), "%s/forkbeard.XXXXXX", directory);
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

int file_copy_finish(struct file_copy *copy)
{
    assert(copy->fd != -1);
    return fchmod(copy->fd, S_IRUSR | S_IXUSR);
}

int file_copy_keep(struct file_copy *copy)
{
    file_copy_drop(copy);
    return -1;
}

void file_copy_drop(struct file_copy *copy)
{
    if (copy->fd == -1)
        return;
    unlink(copy->path);
    close(copy->fd);
    copy->fd = -1;
}

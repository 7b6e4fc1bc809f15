/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls on open descriptors, equal on every system. */
#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

void descriptor_close(int fd)
{
    int error = errno;

    if (fd != -1)
        close(fd);
    errno = error;
}

void descriptor_stop_linger(int fd)
{
    static const struct linger off = { .l_onoff = 0 };

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
}

void descriptor_discard(int fd)
{
    int error = errno;

    assert(fd >= 0);
    descriptor_stop_linger(fd);
    close(fd);
    errno = error;
}

int descriptor_set_inherited(int fd, bool inherited)
{
    return fcntl(fd, F_SETFD, inherited ? 0 : FD_CLOEXEC);
}

uint64_t descriptor_inode(int fd)
{
    struct stat st;

    return fd != -1 && fstat(fd, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

nlink_t descriptor_names(int fd, const char *path)
{
    struct stat open_file, named;

    if (fstat(fd, &open_file) == -1 || lstat(path, &named) == -1 ||
        open_file.st_dev != named.st_dev || open_file.st_ino != named.st_ino)
        return 0;
    return named.st_nlink;
}

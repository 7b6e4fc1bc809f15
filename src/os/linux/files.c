/* SPDX-License-Identifier: BSD-2-Clause */
/* Files by calls of Linux: flags at creation, locks of open files, pwritev2(), links of /proc. */
#include "os/files.h"

#include "os/descriptor.h"
#include "os/log_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

static_assert(SOCK_NONBLOCK == O_NONBLOCK && SOCK_CLOEXEC == O_CLOEXEC, "a single set of flags");

int descriptor_socket(int domain, int type, int flags)
{
    assert((flags & ~O_NONBLOCK) == 0);
    return socket(domain, type | flags | SOCK_CLOEXEC, 0);
}

int descriptor_socketpair(int domain, int type, int flags, int ends[2])
{
    assert((flags & ~O_NONBLOCK) == 0);
    return socketpair(domain, type | flags | SOCK_CLOEXEC, 0, ends);
}

int descriptor_pipe(int ends[2], int flags)
{
    assert((flags & ~O_NONBLOCK) == 0);
    return pipe2(ends, flags | O_CLOEXEC);
}

int descriptor_accept(int listener, struct sockaddr *address, socklen_t *length, int flags)
{
    assert((flags & ~O_NONBLOCK) == 0);
    return accept4(listener, address, length, flags | SOCK_CLOEXEC);
}

int descriptor_replace(int fd, int place)
{
    assert(fd != place);
    return dup3(fd, place, O_CLOEXEC);
}

void descriptor_widen_pipe(int end, int bytes)
{
    fcntl(end, F_SETPIPE_SZ, bytes); /* failing leaves its usual size */
}

static int read_open_link(int link, char *path, size_t size)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);

    if (n == -1)
        return -1;
    target[n] = '\0';
    return log_file_replace_link(path, size, target, (size_t)n);
}

/* A descriptor's link in /proc has no usable text, and only the kernel makes such links. */
int log_file_follow_link(char *path, size_t size, int *fd)
{
    int link = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), status = -1;
    struct statfs filesystem;
    struct stat st;

    if (link == -1)
        return -1;
    if (fstat(link, &st) == -1 || !S_ISLNK(st.st_mode) || st.st_uid != 0 ||
        fstatfs(link, &filesystem) == -1)
        errno = ELOOP;
    else if (filesystem.f_type == PROC_SUPER_MAGIC)
        status = *fd = log_file_open_to_write(path, LOG_FILE_FLAGS | O_APPEND);
    else
        status = read_open_link(link, path, size);
    descriptor_close(link);
    return status == -1 ? -1 : 0;
}

int log_file_open_again(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    char path[32];

    if (!log_file_is_reopenable(fd, flags))
        return -1;
    snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
    return log_file_open_to_write(path, LOG_FILE_FLAGS | (flags & O_APPEND));
}

bool log_file_is_descriptor(const char *path)
{
    return strncmp(path, "/dev/std", 8) == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/", 6) == 0;
}

const char os_lock_call[] = "fcntl(F_OFD_SETLK)";

enum os_lock_status os_lock_try(int fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return OS_LOCK_DONE;
    if ((errno != EAGAIN && errno != EACCES) || fcntl(fd, F_OFD_GETLK, &lock) == -1)
        return OS_LOCK_FAILED;
    if (lock.l_type == F_UNLCK) { /* released between the two calls */
        errno = EAGAIN;
        return OS_LOCK_FAILED;
    }
    return OS_LOCK_TAKEN;
}

bool os_lock_is_taken(int fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Some kernels refuse RWF_NOWAIT for pipes: tries a private pipe, of the same device only. */
bool os_nowait_is_known(const struct stat *pipe)
{
    struct iovec byte = { .iov_base = (char[]) { '\n' }, .iov_len = 1 };
    struct stat own;
    bool taken = false;
    int ends[2];

    if (descriptor_pipe(ends, 0) == -1)
        return false;
    if (fstat(ends[1], &own) == 0 && own.st_dev == pipe->st_dev)
        taken = os_nowait_write(ends[1], &byte, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return taken;
}

ssize_t os_nowait_write(int fd, const struct iovec *parts, int n)
{
    return pwritev2(fd, parts, n, -1, RWF_NOWAIT);
}

int os_temporary_create(char *path, size_t size)
{
    int fd = memfd_create("forkbeard-test", MFD_CLOEXEC);

    snprintf(path, size, "/proc/self/fd/%d", fd);
    return fd;
}

void os_temporary_close(int fd, const char *path)
{
    (void)path;
    close(fd);
}

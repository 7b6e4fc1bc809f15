/* SPDX-License-Identifier: BSD-2-Clause */
/* Files by calls of POSIX, and by flock(): flags of descriptors set right after the making call,
 * and the owner of a link read before and after the link's text. */
#include "os/files.h"

#include "os/descriptor.h"
#include "os/log_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCK_TRIES 5
#define LOCK_PAUSE_MS 2

/* Sets the flags, and removes a listener's O_NONBLOCK of an accepted socket. */
static bool has_flags(int fd, int flags)
{
    int status = fcntl(fd, F_GETFL);

    assert((flags & ~O_NONBLOCK) == 0);
    if (status == -1 || fcntl(fd, F_SETFD, FD_CLOEXEC) == -1)
        return false;
    return (status & O_NONBLOCK) == flags ||
           fcntl(fd, F_SETFL, (status & ~O_NONBLOCK) | flags) != -1;
}

static int with_flags(int fd, int flags)
{
    if (fd == -1 || has_flags(fd, flags))
        return fd;
    descriptor_close(fd);
    return -1;
}

static int both_with_flags(int ends[2], int flags)
{
    if (has_flags(ends[0], flags) && has_flags(ends[1], flags))
        return 0;
    descriptor_close(ends[0]);
    descriptor_close(ends[1]);
    return -1;
}

int descriptor_socket(int domain, int type, int flags)
{
    return with_flags(socket(domain, type, 0), flags);
}

int descriptor_socketpair(int domain, int type, int flags, int ends[2])
{
    return socketpair(domain, type, 0, ends) == -1 ? -1 : both_with_flags(ends, flags);
}

int descriptor_pipe(int ends[2], int flags)
{
    return pipe(ends) == -1 ? -1 : both_with_flags(ends, flags);
}

int descriptor_accept(int listener, struct sockaddr *address, socklen_t *length, int flags)
{
    return with_flags(accept(listener, address, length), flags);
}

int descriptor_replace(int fd, int place)
{
    assert(fd != place);
    if (dup2(fd, place) == -1)
        return -1;
    return fcntl(place, F_SETFD, FD_CLOEXEC) == -1 ? -1 : place;
}

void descriptor_widen_pipe(int end, int bytes)
{
    (void)end;
    (void)bytes;
}

static bool is_roots_link(const char *path, struct stat *st)
{
    return lstat(path, st) == 0 && S_ISLNK(st->st_mode) && st->st_uid == 0;
}

static bool is_same_link(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Opens by the kernel's own way anything but a regular file: the target of /dev/stderr on some
 * systems has no path. Regular files are what the links of others could have root write to. */
static int open_irregular(const char *path)
{
    int fd = log_file_open_to_write(path, LOG_FILE_FLAGS | O_APPEND);
    struct stat st;

    if (fd == -1 || (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)))
        return fd;
    close(fd);
    errno = ELOOP;
    return -1;
}

/* A link cannot be opened here: a link put there between the two looks is not followed. */
int log_file_follow_link(char *path, size_t size, int *fd)
{
    struct stat before, after, end;
    char target[PATH_MAX];
    ssize_t n;

    if (!is_roots_link(path, &before)) {
        errno = ELOOP;
        return -1;
    }
    if (stat(path, &end) == 0 && !S_ISREG(end.st_mode)) {
        *fd = open_irregular(path);
        return *fd == -1 ? -1 : 0;
    }
    n = readlink(path, target, sizeof(target) - 1);
    if (n == -1)
        return -1;
    if (!is_roots_link(path, &after) || !is_same_link(&before, &after)) {
        errno = ELOOP;
        return -1;
    }
    target[n] = '\0';
    return log_file_replace_link(path, size, target, (size_t)n);
}

/* Opens only terminals again: paths of other files lead to the descriptor itself here. */
int log_file_open_again(int fd)
{
    struct stat open_st, named;
    char path[PATH_MAX];

    if (!log_file_is_reopenable(fd, fcntl(fd, F_GETFL)) || ttyname_r(fd, path, sizeof(path)) != 0 ||
        fstat(fd, &open_st) == -1 || stat(path, &named) == -1 || open_st.st_rdev != named.st_rdev)
        return -1;
    return log_file_open_to_write(path, LOG_FILE_FLAGS);
}

bool log_file_is_descriptor(const char *path)
{
    return strncmp(path, "/dev/std", 8) == 0 || strncmp(path, "/dev/fd/", 8) == 0;
}

const char os_lock_call[] = "flock()";

/* POSIX's own locks belong to a process, and vanish when any descriptor of the file is closed.
 * os_lock_is_taken() holds a shared lock for a moment, so that a taken lock is tried again. */
enum os_lock_status os_lock_try(int fd)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return OS_LOCK_DONE;
        if (errno != EWOULDBLOCK)
            return OS_LOCK_FAILED;
        poll(NULL, 0, LOCK_PAUSE_MS);
    }
    return OS_LOCK_TAKEN;
}

bool os_lock_is_taken(int fd)
{
    int saved = errno;
    bool taken = flock(fd, LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK;

    flock(fd, LOCK_UN);
    errno = saved;
    return taken;
}

bool os_nowait_is_known(const struct stat *pipe)
{
    (void)pipe;
    return true;
}

ssize_t os_nowait_write(int fd, const struct iovec *parts, int n)
{
    struct pollfd polled = { .fd = fd, .events = POLLOUT };

    if (poll(&polled, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return writev(fd, parts, n);
}

int os_temporary_create(char *path, size_t size)
{
    const char *folder = getenv("TMPDIR");
    int n = snprintf(path, size, "%s/forkbeard-test.XXXXXX", folder != NULL ? folder : "/tmp");
    int fd = n > 0 && (size_t)n < size ? mkstemp(path) : -1;

    return fd != -1 ? with_flags(fd, 0) : -1;
}

void os_temporary_close(int fd, const char *path)
{
    unlink(path);
    close(fd);
}

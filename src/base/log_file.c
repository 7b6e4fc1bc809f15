/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens files by O_NONBLOCK. As root it follows symbolic links by itself: the owner is read from
 * the very link whose text is followed, so that no other can be put in its place between.
 * Directories on the way are followed as the kernel does, and are root's to keep. */
#include "base/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define OPEN_FLAGS (O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define LINKS_MAX 16

static void close_keeping_errno(int fd)
{
    int error = errno;

    close(fd);
    errno = error;
}

/* Opens for writing. A FIFO that nobody reads can be opened so only while a reader is there: for
 * this moment we are the reader. Lines for it are lost until another comes. */
static int open_to_write(const char *path, int flags)
{
    int fd = open(path, flags, 0644), reader;

    if (fd != -1 || errno != ENXIO)
        return fd;
    reader = open(path, (flags & ~(O_ACCMODE | O_CREAT)) | O_RDWR);
    if (reader == -1) {
        errno = ENXIO; /* a socket; or a FIFO that we may not read */
        return -1;
    }
    fd = open(path, flags, 0644);
    close_keeping_errno(reader);
    return fd;
}

/* Replaces the path of a link by what the link, which is open, names; -1 with errno. */
static int read_link(int link, char *path, size_t size)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);
    char *slash = strrchr(path, '/');
    size_t head = slash == NULL ? 0 : (size_t)(slash + 1 - path);

    if (n == -1)
        return -1;
    target[n] = '\0';
    if (target[0] == '/')
        head = 0;
    if (head + (size_t)n >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(path + head, target, (size_t)n + 1);
    return 0;
}

/* Follows one link; -1 with errno. A descriptor's link in /proc has no text to go by, and nobody
 * can make one: *fd becomes what the kernel opens by it. */
static int follow_link(char *path, size_t size, int *fd)
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
        status = *fd = open_to_write(path, OPEN_FLAGS | O_APPEND);
    else
        status = read_link(link, path, size);
    close_keeping_errno(link);
    return status == -1 ? -1 : 0;
}

int log_file_open(const char *path)
{
    char followed[PATH_MAX];
    int fd = -1;

    if (geteuid() != 0)
        return open_to_write(path, OPEN_FLAGS | O_APPEND | O_CREAT);
    if (strlen(path) >= sizeof(followed)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(followed, path);
    for (int links = 0; links < LINKS_MAX && fd == -1; links++) {
        fd = open_to_write(followed, OPEN_FLAGS | O_APPEND | O_CREAT | O_NOFOLLOW);
        if (fd == -1 && (errno != ELOOP || follow_link(followed, sizeof(followed), &fd) == -1))
            return -1;
    }
    if (fd == -1)
        errno = ELOOP;
    return fd;
}

/* Whether the open file is one that we need flags of our own for, and can be opened again without
 * harm: a file that is not appended to has a position, which is shared as well. */
static bool is_reopenable(int fd, int flags)
{
    struct stat st;

    if (flags == -1 || (flags & O_ACCMODE) == O_RDONLY || fstat(fd, &st) == -1)
        return false;
    if (S_ISREG(st.st_mode))
        return (flags & O_APPEND) != 0;
    return S_ISFIFO(st.st_mode) || (S_ISCHR(st.st_mode) && isatty(fd));
}

int log_file_open_again(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    char path[32];

    if (!is_reopenable(fd, flags))
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open_to_write(path, OPEN_FLAGS | (flags & O_APPEND));
}

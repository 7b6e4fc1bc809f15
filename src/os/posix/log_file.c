/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows symbolic links where a link cannot be opened: its owner is read before its text and after
 * it, so that a link which was put there between is not followed. Opens terminals again, by their
 * names, and nothing else: other descriptors have no path here that leads to more than
 * themselves. */
#include "os/log_file_private.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_roots_link(const char *path, struct stat *st)
{
    return lstat(path, st) == 0 && S_ISLNK(st->st_mode) && st->st_uid == 0;
}

static bool is_same_link(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Opens by the kernel's own way what is not a regular file: what the link /dev/stderr of some
 * systems leads to has no path. Regular files are what the links of others could have root write
 * to. */
static int open_other(const char *path)
{
    int fd = log_file_open_to_write(path, LOG_FILE_FLAGS | O_APPEND);
    struct stat st;

    if (fd == -1 || (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)))
        return fd;
    close(fd);
    errno = ELOOP;
    return -1;
}

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
        *fd = open_other(path);
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows symbolic links, and opens again what is open, as Linux lets a process do it: the owner is
 * read from the very link whose text is followed, so that no other can be put in its place
 * between. */
#include "os/log_file_private.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Replaces the path of a link by what the link, which is open, names; -1 with errno. */
static int read_link(int link, char *path, size_t size)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);

    if (n == -1)
        return -1;
    target[n] = '\0';
    return log_file_replace_link(path, size, target, (size_t)n);
}

/* A descriptor's link in /proc has no text to go by, and nobody can make one: *fd becomes what the
 * kernel opens by it. */
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
        status = read_link(link, path, size);
    log_file_close(link);
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

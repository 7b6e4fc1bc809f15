/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens files by O_NONBLOCK. As root it follows symbolic links step by step, only root's, and opens
 * no file with a second name, because any writer of the directory can have laid either. Directories
 * on the way are followed as the kernel does, and are root's responsibility. */
#include "os/log_file.h"

#include "os/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 16

/* Whether the path is the only name of the opened file; later changes do not count. */
static bool is_only_name(const char *path, int fd)
{
    struct stat opened;

    return fstat(fd, &opened) == 0 && (!S_ISREG(opened.st_mode) || descriptor_names(fd, path) == 1);
}

/* Opens a file as root; -1 with errno: ELOOP: a link; EMLINK: the file has a second name. */
static int open_as_root(const char *path)
{
    int fd = log_file_open_to_write(path, LOG_FILE_FLAGS | O_APPEND | O_CREAT | O_NOFOLLOW);

    if (fd == -1 || is_only_name(path, fd))
        return fd;
    close(fd);
    errno = EMLINK;
    return -1;
}

int log_file_open(const char *path)
{
    char followed[PATH_MAX];
    int fd = -1;

    if (geteuid() != 0)
        return log_file_open_to_write(path, LOG_FILE_FLAGS | O_APPEND | O_CREAT);
    if (strlen(path) >= sizeof(followed)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(followed, path);
    for (int links = 0; links < LINKS_MAX && fd == -1; links++) {
        fd = open_as_root(followed);
        if (fd == -1 &&
            (errno != ELOOP || log_file_follow_link(followed, sizeof(followed), &fd) == -1))
            return -1;
    }
    if (fd == -1)
        errno = ELOOP;
    return fd;
}

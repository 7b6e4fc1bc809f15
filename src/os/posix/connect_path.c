/* SPDX-License-Identifier: BSD-2-Clause */
/* Reaches a long path from its directory, where its name alone is the address. The command line is
 * a process of one thread, which goes back to the directory that it was in. */
#include "os/connect_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_name(int fd, const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    if (strlen(name) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, name);
    return connect(fd, (struct sockaddr *)&address, sizeof(address));
}

int connect_path(int fd, const char *path)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX];
    int before, status = -1, error;

    if (strlen(path) < sizeof(((struct sockaddr_un *)0)->sun_path) || slash == NULL)
        return connect_name(fd, path);
    snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path) + 1, path);
    before = open(".", O_RDONLY | O_CLOEXEC);
    if (before == -1)
        return -1;
    if (chdir(directory) == 0)
        status = connect_name(fd, slash + 1);
    error = errno;
    if (fchdir(before) == -1)
        status = -1;
    else
        errno = error;
    close(before);
    return status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reaches a long path by a descriptor of its file, which /proc has a short name for. */
#include "os/connect_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int connect_path(int fd, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int file = -1, status, error;

    if (strlen(path) < sizeof(address.sun_path)) {
        strcpy(address.sun_path, path);
    } else {
        file = open(path, O_PATH | O_CLOEXEC);
        if (file == -1)
            return -1;
        snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
    }
    status = connect(fd, (struct sockaddr *)&address, sizeof(address));
    error = errno;
    if (file != -1)
        close(file);
    errno = error;
    return status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors are made close-on-exec one by one: no other thread of the process runs programs. None
 * can be refused; whoever receives discards what it has not asked for. */
#include "process/fd_passing.h"

#include "process/fd_passing_private.h"

#include <errno.h>
#include <fcntl.h>

ssize_t fd_receive_message(int socket, struct msghdr *header)
{
    return recvmsg(socket, header, 0);
}

void fd_set_received(int fd)
{
    int saved = errno;

    fcntl(fd, F_SETFD, FD_CLOEXEC);
    errno = saved;
}

void fd_refuse(int socket)
{
    (void)socket;
}

bool fd_is_refused(int socket)
{
    (void)socket;
    return false;
}

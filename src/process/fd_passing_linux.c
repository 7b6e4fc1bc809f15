/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors are received close-on-exec, and refused by the kernel itself since Linux 6.16. */
#include "process/fd_passing.h"

#include "process/fd_passing_private.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

ssize_t fd_receive_message(int socket, struct msghdr *header)
{
    return recvmsg(socket, header, MSG_CMSG_CLOEXEC);
}

void fd_set_received(int fd)
{
    (void)fd;
}

void fd_refuse(int socket)
{
    static const int off = 0;

    setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

bool fd_is_refused(int socket)
{
    int on = 1;
    socklen_t n = sizeof(on);

    return getsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &on, &n) == 0 && on == 0;
}

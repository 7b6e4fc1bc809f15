/* SPDX-License-Identifier: BSD-2-Clause */
/* POSIX tells of an end that has gone (POLLHUP). One that was only shut down reads as empty packets
 * for ever, so two of them in a row are taken for it: no end sends an empty one. */
#include "process/channel.h"

#include <poll.h>
#include <sys/socket.h>

bool channel_is_closed(int fd)
{
    struct pollfd state = { .fd = fd, .events = POLLIN };
    char byte;

    if (poll(&state, 1, 0) != 1)
        return false;
    if ((state.revents & (POLLHUP | POLLERR)) != 0)
        return true;
    return recv(fd, &byte, 1, MSG_PEEK) == 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Linux tells of an end that sends no more (POLLRDHUP) apart from a packet that waits. */
#include "process/channel.h"

#include <poll.h>

bool channel_is_closed(int fd)
{
    struct pollfd state = { .fd = fd, .events = POLLRDHUP };

    return poll(&state, 1, 0) == 1 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

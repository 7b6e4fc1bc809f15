/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the kernel, which has other meanings for two numbers of a listening socket. */
#include "control/queues.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

bool control_queues_add(struct control_queues *queues, int fd)
{
    uint32_t memory[SK_MEMINFO_VARS] = { 0 };
    socklen_t length = sizeof(struct tcp_info);
    struct tcp_info info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == -1)
        return false;
    queues->queue += info.tcpi_unacked; /* for a listening socket: the queue, and below its limit */
    queues->backlog = info.tcpi_sacked;
    length = sizeof(memory);
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length) == -1)
        return false;
    queues->drops += memory[SK_MEMINFO_DROPS];
    return true;
}

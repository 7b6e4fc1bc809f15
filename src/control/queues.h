/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues of listening sockets, as far as the kernel tells (queues_linux.c; not at all by
 * queues_none.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Lengths of the queues of a listener's sockets, added up. */
struct control_queues {
    int64_t backlog, queue, drops;
};

/* Adds a socket's; false where the kernel does not say. */
bool control_queues_add(struct control_queues *queues, int fd);

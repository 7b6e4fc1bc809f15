/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists which processes have which sockets open, by the inode, as far as the system shows it to
 * this user: root sees all processes, others their own. Each process is read once, however many
 * sockets are asked for. Opens nothing but directories and texts of /proc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct socket_held {
    unsigned long inode;
    pid_t pid;
};

/* A list of sockets that processes hold; zeroed it is empty. */
struct socket_holders {
    struct socket_held *sockets;
    size_t n, room;
    bool sorted;
};

/* Adds all sockets of the process; -1 where this user may not know them, or without memory. */
int socket_holders_add(struct socket_holders *holders, pid_t pid);
/* Adds the sockets of all processes that this user sees. */
void socket_holders_add_all(struct socket_holders *holders);
/* Returns the first process of the list that has the socket; 0: none has. */
pid_t socket_holders_find(struct socket_holders *holders, unsigned long inode);
void socket_holders_done(struct socket_holders *holders);

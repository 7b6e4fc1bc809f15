/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists which processes have which sockets open, by the inode, as far as /proc shows it to this
 * user (socket_holder_linux.c): root sees all processes, others their own. Each process is read
 * once, however many sockets are asked for. Nothing is opened but directories and texts of /proc.
 * Other systems show nothing of it (socket_holder_none.c). */
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

/* Reads the name of the process's program, "?" where there is none. */
void socket_holder_name(pid_t pid, char name[32]);

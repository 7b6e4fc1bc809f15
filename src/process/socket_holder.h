/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the process that has a socket open, by its inode, as far as /proc shows it to this user:
 * root sees all processes, others their own. Nothing is opened but directories and texts of
 * /proc. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct socket_holder {
    pid_t pid;
    char name[32]; /* of the program */
};

/* Whether the process has the socket open: 1 or 0, or -1 where this user may not know. */
int socket_holder_is(pid_t pid, unsigned long inode);
/* Finds the first process that has the socket open; false: this user sees none. */
bool socket_holder_find(unsigned long inode, struct socket_holder *holder);

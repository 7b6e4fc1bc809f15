/* SPDX-License-Identifier: BSD-2-Clause */
/* New descriptors that no program started by exec() inherits. `flags` is 0, or O_NONBLOCK. Each
 * function returns what the system call of its name does, with errno; a system that takes the flags
 * with that call (os/linux/descriptor.c) leaves no moment without them, the other
 * (os/posix/descriptor.c) sets them right after. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

int descriptor_socket(int domain, int type, int flags);
int descriptor_socketpair(int domain, int type, int flags, int ends[2]);
int descriptor_pipe(int ends[2], int flags);
int descriptor_accept(int listener, struct sockaddr *address, socklen_t *length, int flags);
/* Makes `place`, whatever it has been, another name of what `fd` is; they must differ. */
int descriptor_replace(int fd, int place);
/* Closes a descriptor, if it is not -1, and keeps errno. */
void descriptor_close(int fd);
/* Makes close() of a socket return at once, whatever another process with the socket has set: with
 * SO_LINGER it waits for the peer. Does nothing to other descriptors. */
void descriptor_stop_linger(int fd);
/* Closes a descriptor of a socket that other processes have set options of, such as SO_LINGER, and
 * never waits for that socket's peer; keeps errno. */
void descriptor_discard(int fd);
/* Whether programs started by exec() inherit the descriptor from now on; -1 with errno. */
int descriptor_set_inherited(int fd, bool inherited);
/* Returns the inode that the descriptor is open on; 0 for a closed one, or -1. */
uint64_t descriptor_inode(int fd);
/* Gives a pipe room for so many bytes, where the system lets a process do that. */
void descriptor_widen_pipe(int end, int bytes);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Open descriptors: their end, and whether programs inherit them. New ones are made by
 * os/files.h. */
#pragma once

#include "os/files.h"

#include <stdbool.h>
#include <stdint.h>

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

/* SPDX-License-Identifier: BSD-2-Clause */
/* Open descriptors: closing, and inheritance. os/files.h makes new descriptors. */
#pragma once

#include "os/files.h"

#include <stdbool.h>
#include <stdint.h>

/* Closes a descriptor, unless -1, and keeps errno. */
void descriptor_close(int fd);
/* Makes close() of a socket return at once: SO_LINGER, maybe set by another process, has close()
 * wait for the peer. Does nothing to descriptors of files. */
void descriptor_stop_linger(int fd);
/* Closes a socket, whatever options such as SO_LINGER are set by foreign processes, and never waits
 * for the peer; keeps errno. */
void descriptor_discard(int fd);
/* Whether programs started by exec() inherit the descriptor from now on; -1 with errno. */
int descriptor_set_inherited(int fd, bool inherited);
/* Returns the inode of an open descriptor; 0 for a closed descriptor, or -1. */
uint64_t descriptor_inode(int fd);
/* Returns how many names the open file has, `path` among them; 0: the path leads to another
 * file. */
nlink_t descriptor_names(int fd, const char *path);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Open descriptors: closing, and inheritance. os/files.h makes new descriptors. */
#pragma once

#include "os/files.h"

#include <stdbool.h>
#include <stdint.h>

/* Closes a descriptor, unless -1, and keeps errno. */
void descriptor_close(int fd);
/* Makes close() return at once, whatever SO_LINGER another process has set on the socket. */
void descriptor_stop_linger(int fd);
/* Closes a socket as above, and keeps errno. */
void descriptor_discard(int fd);
/* Sets whether programs started by exec() inherit the descriptor; -1 with errno. */
int descriptor_set_inherited(int fd, bool inherited);
/* Returns the inode of an open descriptor; 0: none. */
uint64_t descriptor_inode(int fd);
/* Counts the names of the open file, with `path` among them; 0: the path leads elsewhere. */
nlink_t descriptor_names(int fd, const char *path);

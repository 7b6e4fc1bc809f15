/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks of files that belong to the open file: a process that inherits or is passed the descriptor
 * has the lock too, and it ends when the last of these descriptors is closed. Linux has such locks
 * under fcntl() (os/linux/file_lock.c), other systems under flock() (os/posix/file_lock.c); POSIX's own
 * belong to a process, which loses them by closing any descriptor of the file. */
#pragma once

#include <stdbool.h>

enum file_lock_status { FILE_LOCK_FAILED = -1, FILE_LOCK_DONE, FILE_LOCK_TAKEN };

/* The name of the call, for messages. */
extern const char file_lock_call[];

/* Locks the file, open for writing: FILE_LOCK_TAKEN when another open file has the lock; FAILED
 * with errno, EAGAIN where another try is worth it. */
enum file_lock_status file_lock_try(int fd);
/* Whether another open file has the lock; asked by a descriptor that has none itself. Leaves
 * errno alone. */
bool file_lock_is_taken(int fd);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Files: locks, and writing to pipes without waiting. Descriptors are the caller's. Never logs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum os_lock_status { OS_LOCK_FAILED = -1, OS_LOCK_DONE, OS_LOCK_TAKEN };

/* Locks of files that belong to the open file: a process that inherits or is passed the descriptor
 * has the lock too, which ends when the last of the descriptors is closed. The call's name is for
 * messages. */
extern const char os_lock_call[];
/* Locks a file that is open for writing. TAKEN: another open file has the lock. FAILED: errno is
 * set, EAGAIN where another try is worth it. */
enum os_lock_status os_lock_try(int fd);
/* Whether another open file has the lock, asked by a descriptor without it. Leaves errno alone. */
bool os_lock_is_taken(int fd);

/* Writing to a pipe that is not ours to make non-blocking, since its flags are those of all
 * writers: whether the kernel does so without waiting. */
bool os_nowait_is_known(const struct stat *pipe);
/* Writes as writev(); EAGAIN: the pipe has no room. A system without a call for this asks for room
 * first, and waits where another writer takes that room. */
ssize_t os_nowait_write(int fd, const struct iovec *parts, int n);

/* Creates a temporary file, close-on-exec, and its path, by which it can be opened; -1 with errno.
 * A system without files in memory has it on the disk until os_temporary_close(). */
int os_temporary_create(char *path, size_t size);
void os_temporary_close(int fd, const char *path);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Files: locks, and writing to pipes without waiting. Descriptors are the caller's. Never logs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum os_lock_status { OS_LOCK_FAILED = -1, OS_LOCK_DONE, OS_LOCK_TAKEN };

/* Locks of open files, inherited and passed with descriptors. The call's name is for messages. */
extern const char os_lock_call[];
/* Locks a file open for writing. TAKEN: by another open file. FAILED: with errno; EAGAIN: retry. */
enum os_lock_status os_lock_try(int fd);
/* Whether an open file other than the descriptor's has the lock. Keeps errno. */
bool os_lock_is_taken(int fd);
/* Whether the kernel writes to such a foreign pipe without waiting, and without O_NONBLOCK. */
bool os_nowait_is_known(const struct stat *pipe);
/* Writes as writev(); EAGAIN: the pipe is full. Without pwritev2() may wait in a race for room. */
ssize_t os_nowait_write(int fd, const struct iovec *parts, int n);
/* Creates a temporary close-on-exec file, in memory or on the disk, and its path; -1 with errno. */
int os_temporary_create(char *path, size_t size);
void os_temporary_close(int fd, const char *path);
/* Make close-on-exec descriptors by the system call in the name. `flags` is 0, or O_NONBLOCK. Linux
 * passes the flags to the call; elsewhere fcntl() sets them right after. */
int descriptor_socket(int domain, int type, int flags);
int descriptor_socketpair(int domain, int type, int flags, int ends[2]);
int descriptor_pipe(int ends[2], int flags);
int descriptor_accept(int listener, struct sockaddr *address, socklen_t *length, int flags);
/* Makes `place`, another number, a duplicate of `fd`, as dup3() with close-on-exec. */
int descriptor_replace(int fd, int place);
/* Gives a pipe room for so many bytes, where the system can. */
void descriptor_widen_pipe(int end, int bytes);

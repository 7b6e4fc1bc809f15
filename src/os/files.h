/* SPDX-License-Identifier: BSD-2-Clause */
/* Files: locks, and writing to pipes without waiting. Descriptors are the caller's. Never logs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum os_lock_status { OS_LOCK_FAILED = -1, OS_LOCK_DONE, OS_LOCK_TAKEN };

/* Locks of files that belong to the open file: a process that inherits or is passed the descriptor
 * has the lock too, which ends when the last of the descriptors is closed. The call's name is for
 * messages. */
extern const char os_lock_call[];
/* Locks a file open for writing. TAKEN: another open file has the lock. FAILED: errno is set,
 * EAGAIN where a retry is worthwhile. */
enum os_lock_status os_lock_try(int fd);
/* Whether an open file other than the descriptor's has the lock; the descriptor has none. Leaves
 * errno alone. */
bool os_lock_is_taken(int fd);

/* Non-blocking writes to a foreign pipe, whose O_NONBLOCK all writers would share: whether the
 * kernel can write without waiting. */
bool os_nowait_is_known(const struct stat *pipe);
/* Writes as writev(); EAGAIN: the pipe is full. A system without pwritev2() asks for room first,
 * and waits where another writer takes the room. */
ssize_t os_nowait_write(int fd, const struct iovec *parts, int n);

/* Creates a temporary file, close-on-exec, and the path to open; -1 with errno. A system without
 * files in memory keeps the file on the disk until os_temporary_close(). */
int os_temporary_create(char *path, size_t size);
void os_temporary_close(int fd, const char *path);

/* Makes close-on-exec descriptors. `flags` is 0, or O_NONBLOCK. Each function returns the result of
 * the system call in the name, with errno. Linux passes the flags to the call; elsewhere fcntl()
 * sets the flags right after. */
int descriptor_socket(int domain, int type, int flags);
int descriptor_socketpair(int domain, int type, int flags, int ends[2]);
int descriptor_pipe(int ends[2], int flags);
int descriptor_accept(int listener, struct sockaddr *address, socklen_t *length, int flags);
/* Makes `place`, open or not, a duplicate of `fd`, as dup3() with close-on-exec does; the two
 * differ. */
int descriptor_replace(int fd, int place);
/* Gives a pipe room for so many bytes, where the system lets a process do that. */
void descriptor_widen_pipe(int end, int bytes);

/* Files of logs (os/log_file.h). */
/* Opens the file of a descriptor again for writing, with private flags: all heirs of a descriptor
 * share its flags. -1 where an open fails or is useless: a socket, a file not appended to, a device
 * without a reader. */
int log_file_open_again(int fd);
/* Whether the path names a descriptor of the opening process, whatever the number. */
bool log_file_is_descriptor(const char *path);
/* Follows one link: in the path or, where the target's path is unknowable, by opening *fd. -1 with
 * errno: ELOOP where the link is not root's. */
int log_file_follow_link(char *path, size_t size, int *fd);

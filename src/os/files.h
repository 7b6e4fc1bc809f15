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

/* New descriptors that no program started by exec() inherits. `flags` is 0, or O_NONBLOCK. Each
 * function returns what the system call of its name does, with errno. Linux takes the flags with
 * that call; another system sets them right after. */
int descriptor_socket(int domain, int type, int flags);
int descriptor_socketpair(int domain, int type, int flags, int ends[2]);
int descriptor_pipe(int ends[2], int flags);
int descriptor_accept(int listener, struct sockaddr *address, socklen_t *length, int flags);
/* Makes `place`, whatever it has been, another name of what `fd` is; they must differ. */
int descriptor_replace(int fd, int place);
/* Gives a pipe room for so many bytes, where the system lets a process do that. */
void descriptor_widen_pipe(int end, int bytes);

/* Files of logs (os/log_file.h). */
/* Opens what the descriptor leads to for writing, with flags of its own: those of the descriptor
 * are shared by all that have inherited it. -1 for what cannot be opened or need not be: a socket,
 * a file that is not appended to, a device without a reader. */
int log_file_open_again(int fd);
/* Whether the path names a descriptor of the process that opens it, whatever that is. */
bool log_file_is_descriptor(const char *path);
/* Follows one link, in the path or, where the path of its target cannot be known, by opening it:
 * *fd. -1 with errno: ELOOP where the link is not root's. */
int log_file_follow_link(char *path, size_t size, int *fd);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the files of logs, and open files again. Neither an open nor a later write waits for a
 * reader. Root follows no link of another user: the workers' user may own the directory. */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>

/* Opens or creates the path for appending. -1 with errno; as root, ELOOP: a symbolic link not owned
 * by root is on the way, EMLINK: the file has a second name. */
int log_file_open(const char *path);
/* Opens a descriptor's file again for writing, with flags of our own. -1 where an open fails or is
 * useless: a socket, a file not appended to, a device without a reader. */
int log_file_open_again(int fd);
/* Whether the path names a descriptor of the opening process, whatever the number. */
bool log_file_is_descriptor(const char *path);

/* Steps of opening, for os/ alone (log_open.c). */

#define LOG_FILE_FLAGS (O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* Opens for writing. To open a FIFO without a reader, and without waiting, the process is the
 * reader meanwhile; lines in the FIFO are lost until a new reader comes. */
int log_file_open_to_write(const char *path, int flags);
/* Whether a file can be opened again: without O_APPEND its position must stay shared. */
bool log_file_is_reopenable(int fd, int flags);
/* Replaces the path of a link by its target, of n bytes with a NUL; -1 with errno. */
int log_file_replace_link(char *path, size_t size, const char *target, size_t n);
/* Follows one link: in the path or, where the target's path is unknowable, by opening *fd. -1 with
 * errno: ELOOP where the link is not root's. */
int log_file_follow_link(char *path, size_t size, int *fd);

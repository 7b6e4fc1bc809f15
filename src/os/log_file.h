/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the files of logs, and opens again what is open already. No open waits for a reader, and no
 * write to what was opened does. Root follows no symbolic link that another user has made: the log
 * may lie in a directory of the workers' user. */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>

/* Opens the path for appending, and makes a file that is missing. -1 with errno; ELOOP: we are
 * root, and the last component is a symbolic link that is not root's, or leads to such a one.
 * EMLINK: we are root, and the file has another name. */
int log_file_open(const char *path);
/* Opens what the descriptor leads to for writing, with flags of its own: those of the descriptor
 * are shared by all that have inherited it. -1 for what cannot be opened or need not be: a socket,
 * a file that is not appended to, a device without a reader. */
int log_file_open_again(int fd);
/* Whether the path names a descriptor of the process that opens it, whatever that is. */
bool log_file_is_descriptor(const char *path);

/* Between log_file.c and files.c of the system: */

#define LOG_FILE_FLAGS (O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* Opens for writing. A FIFO without a reader can be opened so only while a reader is there: for
 * this moment we are the reader. Lines for it are lost until another comes. */
int log_file_open_to_write(const char *path, int flags);
/* Whether the open file needs flags of our own, and can be opened again without harm: a file that
 * is not appended to has a position, which is shared as well. */
bool log_file_is_reopenable(int fd, int flags);
/* Replaces the path of a link by its target, of n bytes with a NUL; -1 with errno. */
int log_file_replace_link(char *path, size_t size, const char *target, size_t n);
/* Follows one link, in the path or, where the path of its target cannot be known, by opening it:
 * *fd. -1 with errno: ELOOP where the link is not root's. */
int log_file_follow_link(char *path, size_t size, int *fd);

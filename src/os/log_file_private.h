/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening a log file: the same on every system (log_file.c), but for two steps: following a
 * symbolic link, and opening again what is open (os/linux/log_file.c, os/posix/log_file.c). */
#pragma once

#include "os/log_file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>

#define LOG_FILE_FLAGS (O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* Closes it, and keeps errno. */
void log_file_close(int fd);
/* Opens for writing. A FIFO that nobody reads can be opened so only while a reader is there: for
 * this moment we are the reader. Lines for it are lost until another comes. */
int log_file_open_to_write(const char *path, int flags);
/* Whether the open file is one that we need flags of our own for, and can be opened again without
 * harm: a file that is not appended to has a position, which is shared as well. */
bool log_file_is_reopenable(int fd, int flags);
/* Replaces the path of a link by what the link names: `target`, of n bytes with a NUL; -1 with
 * errno. */
int log_file_replace_link(char *path, size_t size, const char *target, size_t n);

/* Follows one link, in the path or, where the path of what it leads to cannot be known, by opening
 * it: *fd. -1 with errno: ELOOP where the link is not root's. */
int log_file_follow_link(char *path, size_t size, int *fd);

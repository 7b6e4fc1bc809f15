/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps of opening a log's file, equal on every system. Private to os/. */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>

#define LOG_FILE_FLAGS (O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* Opens for writing. A FIFO without a reader can be opened without waiting only by being the reader
 * meanwhile. Lines in the FIFO are lost until a new reader comes. */
int log_file_open_to_write(const char *path, int flags);
/* Whether the open file needs flags of our own, and can be opened again without harm: a file that
 * is not appended to has a position, which is shared as well. */
bool log_file_is_reopenable(int fd, int flags);
/* Replaces the path of a link by its target, of n bytes with a NUL; -1 with errno. */
int log_file_replace_link(char *path, size_t size, const char *target, size_t n);

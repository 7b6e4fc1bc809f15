/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing to a pipe that is not ours to make non-blocking, because its flags are those of everybody
 * who writes to it. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/uio.h>

/* Whether the kernel writes to such a pipe without waiting. */
bool log_nowait_is_known(const struct stat *pipe);
/* Writes as writev() does, but fails with EAGAIN where the pipe has no room. */
ssize_t log_nowait_write(int fd, const struct iovec *parts, int n);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects to the control socket's path, which may be longer than an address has room for: by a
 * descriptor of the file (os/linux/connect_path.c), or from its directory (os/posix/connect_path.c). */
#pragma once

/* Connects the unix domain socket `fd`; -1 with errno, ENAMETOOLONG where the path cannot be
 * reached. */
int connect_path(int fd, const char *path);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the files of logs, and opens again what is open already. No open waits for a reader, and no
 * write to what was opened does. Root follows no symbolic link that another user has made: the log
 * may lie in a directory of the workers' user. */
#pragma once

#include <stdbool.h>

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

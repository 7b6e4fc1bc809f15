/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the files of logs, and opens again what is open already. No open waits for a reader, and no
 * write to what was opened does. Root follows no symbolic link that another user has made: the log
 * may lie in a directory of the workers' user. */
#pragma once

#include "os/files.h"

/* Opens the path for appending, and makes a file that is missing. -1 with errno; ELOOP: we are
 * root, and the last component is a symbolic link that is not root's, or leads to such a one.
 * EMLINK: we are root, and the file has another name. */
int log_file_open(const char *path);

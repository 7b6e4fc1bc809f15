/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the files of logs, and opens open files again. No open waits for a reader, and no write to
 * an opened file does. Root follows no symbolic link of another user: the log may lie in a
 * directory of the workers' user. */
#pragma once

#include "os/files.h"

/* Opens the path for appending, and creates a missing file. -1 with errno; ELOOP: we are root, and
 * the last component is, or leads to, a symbolic link not owned by root. EMLINK: we are root, and
 * the file has a second name. */
int log_file_open(const char *path);

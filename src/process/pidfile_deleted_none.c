/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces pidfile_deleted_linux.c where the system does not show the descriptors of another
 * process: a lock whose file was deleted is not found. */
#include "process/pidfile.h"

bool pidfile_has_deleted_lock(const char *pid_path, pid_t pid)
{
    (void)pid_path;
    (void)pid;
    return false;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of directories: names made, removed and moved, and files that were written or whose
 * status has changed. Never tells what has changed. Descriptors are the caller's. Never logs. */
#pragma once

#include <stdbool.h>

/* Opens a descriptor, readable once a directory has changed; -1 with errno (ENOSYS: the system has
 * none). */
int os_directory_watch_open(void);
/* Watches a directory from now on, also when watched before: `entries` as above, and else only
 * whether the directory itself is moved or removed. -1 with errno. */
int os_directory_watch_add(int watch, const char *directory, bool entries);
/* Takes all changes so far; whether there were any. */
bool os_directory_watch_take(int watch);

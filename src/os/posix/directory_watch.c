/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of directories, of which POSIX tells nothing. */
#include "os/directory_watch.h"

#include <errno.h>

int os_directory_watch_open(void)
{
    errno = ENOSYS;
    return -1;
}

int os_directory_watch_add(int watch, const char *directory, bool entries)
{
    (void)watch;
    (void)directory;
    (void)entries;
    errno = ENOSYS;
    return -1;
}

bool os_directory_watch_take(int watch)
{
    (void)watch;
    return false;
}

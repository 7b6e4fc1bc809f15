/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine's memory by sysconf(). POSIX knows of no limit of a group of processes, and of
 * nothing that could be read from elsewhere. */
#include "os/ram.h"

#include <unistd.h>

/* Systems that have a number to tell define the name, which POSIX does not. */
#ifndef _SC_PHYS_PAGES
#define _SC_PHYS_PAGES (-1)
#endif

int64_t ram_allowed_below(const char *root)
{
    (void)root;
    return ram_allowed();
}

int64_t ram_allowed(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    if (pages <= 0 || size <= 0 || pages > INT64_MAX / size)
        return 0;
    return (int64_t)pages * size;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine's processors and memory by sysconf(); POSIX has no groups. */
#include "os/limits.h"

#include <unistd.h>

/* Systems with a number of pages define the name, POSIX does not. */
#ifndef _SC_PHYS_PAGES
#define _SC_PHYS_PAGES (-1)
#endif

unsigned os_cpu_allowed(const char *root)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);

    (void)root;
    return online > 0 ? (unsigned)online : 1;
}

int64_t os_ram_allowed(const char *root)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    (void)root;
    if (pages <= 0 || size <= 0 || pages > INT64_MAX / size)
        return 0;
    return (int64_t)pages * size;
}

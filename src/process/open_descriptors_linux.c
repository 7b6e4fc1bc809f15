/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists descriptors by /proc, and closes a range by one call. Where there is no /proc none are
 * listed. */
#include "process/open_descriptors.h"

#include "base/number.h"

#include <dirent.h>
#include <limits.h>
#include <stddef.h>
#include <unistd.h>

void open_descriptors_visit(void (*visit)(void *arg, int fd), void *arg)
{
    DIR *directory = opendir("/proc/thread-self/fd");
    const struct dirent *entry;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        int64_t fd;

        if (number_parse(entry->d_name, 0, INT_MAX, &fd) == NUMBER_OK && fd != dirfd(directory))
            visit(arg, (int)fd);
    }
    if (directory != NULL)
        closedir(directory);
}

void open_descriptors_close(unsigned first, unsigned last)
{
    close_range(first, last, 0);
}

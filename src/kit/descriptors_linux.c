/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists the program's descriptors, as /proc has them. Where /proc is missing, there are none. */
#include "kit/kit.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static void add_descriptor(struct kit_descriptors *open, int directory, const char *name)
{
    char what[128];
    ssize_t n = readlinkat(directory, name, what, sizeof(what) - 1);

    if (n == -1) /* closed just now, by a thread */
        return;
    what[n] = '\0';
    kit_descriptors_add(open, atoi(name), what);
}

void kit_descriptors_list(struct kit_descriptors *open)
{
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;

    SLIST_INIT(open);
    if (directory == NULL)
        return;
    while ((entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(directory))
            add_descriptor(open, dirfd(directory), entry->d_name);
    closedir(directory);
}

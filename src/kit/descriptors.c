/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the program's descriptors before and after a test: finds those that the protocol has
 * left open, and those of others that it has closed. Where /proc is missing, nothing is found. */
#include "kit/kit.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_descriptor(struct kit_descriptors *open, int directory, const char *name)
{
    struct kit_descriptor *descriptor = kit_alloc(sizeof(*descriptor));
    ssize_t n = readlinkat(directory, name, descriptor->what, sizeof(descriptor->what) - 1);

    if (n == -1) { /* closed just now, by a thread */
        free(descriptor);
        return;
    }
    descriptor->fd = atoi(name);
    SLIST_INSERT_HEAD(open, descriptor, link);
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

static bool has_descriptor(const struct kit_descriptors *open, const struct kit_descriptor *wanted)
{
    const struct kit_descriptor *descriptor;

    SLIST_FOREACH (descriptor, open, link)
        if (descriptor->fd == wanted->fd && strcmp(descriptor->what, wanted->what) == 0)
            return true;
    return false;
}

static void free_list(struct kit_descriptors *open)
{
    struct kit_descriptor *descriptor;

    while ((descriptor = SLIST_FIRST(open)) != NULL) {
        SLIST_REMOVE_HEAD(open, link);
        free(descriptor);
    }
}

void kit_descriptors_compare(fb_test *test, struct kit_descriptors *before)
{
    struct kit_descriptors now;
    const struct kit_descriptor *descriptor;

    kit_descriptors_list(&now);
    SLIST_FOREACH (descriptor, &now, link)
        if (!has_descriptor(before, descriptor))
            kit_fault(test, "descriptor %d (%s) was not closed", descriptor->fd, descriptor->what);
    SLIST_FOREACH (descriptor, before, link)
        if (!has_descriptor(&now, descriptor))
            kit_fault(test, "descriptor %d (%s), which was open before the start, was closed",
                descriptor->fd, descriptor->what);
    free_list(&now);
    free_list(before);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Which descriptors the program has, so that one is found that a protocol has not closed, or that it
 * has closed and was another's. */
#include "kit/kit.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add(struct fb_kit_descriptors *open, int directory, const char *name)
{
    struct fb_kit_descriptor *descriptor = fb_kit_alloc(sizeof(*descriptor));
    ssize_t n = readlinkat(directory, name, descriptor->what, sizeof(descriptor->what) - 1);

    if (n == -1) { /* a thread has closed it just now */
        free(descriptor);
        return;
    }
    descriptor->fd = atoi(name);
    SLIST_INSERT_HEAD(open, descriptor, link);
}

void fb_kit_look(struct fb_kit_descriptors *open)
{
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;

    SLIST_INIT(open);
    if (directory == NULL)
        return; /* nothing can be said then */
    while ((entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(directory))
            add(open, dirfd(directory), entry->d_name);
    closedir(directory);
}

static bool has(const struct fb_kit_descriptors *open, const struct fb_kit_descriptor *wanted)
{
    const struct fb_kit_descriptor *descriptor;

    SLIST_FOREACH (descriptor, open, link)
        if (descriptor->fd == wanted->fd && strcmp(descriptor->what, wanted->what) == 0)
            return true;
    return false;
}

static void release(struct fb_kit_descriptors *open)
{
    struct fb_kit_descriptor *descriptor;

    while ((descriptor = SLIST_FIRST(open)) != NULL) {
        SLIST_REMOVE_HEAD(open, link);
        free(descriptor);
    }
}

void fb_kit_compare(fb_test *test, struct fb_kit_descriptors *before)
{
    struct fb_kit_descriptors now;
    const struct fb_kit_descriptor *descriptor;

    fb_kit_look(&now);
    SLIST_FOREACH (descriptor, &now, link)
        if (!has(before, descriptor))
            fb_kit_fault(
                test, "descriptor %d (%s) was not closed", descriptor->fd, descriptor->what);
    SLIST_FOREACH (descriptor, before, link)
        if (!has(&now, descriptor))
            fb_kit_fault(test, "descriptor %d (%s), which was open before the start, was closed",
                descriptor->fd, descriptor->what);
    release(&now);
    release(before);
}

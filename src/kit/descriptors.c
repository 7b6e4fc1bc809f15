/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the program's descriptors before and after a test: finds those that the protocol has
 * left open, and those of others that it has closed. */
#include "kit/kit.h"

#include "os/proc.h"

#include <stdlib.h>
#include <string.h>

static void add_descriptor(void *arg, int fd)
{
    struct kit_descriptors *open = arg;
    struct kit_descriptor *descriptor = kit_alloc(sizeof(*descriptor));

    descriptor->fd = fd;
    if (os_descriptor_describe(fd, descriptor->what, sizeof(descriptor->what)))
        SLIST_INSERT_HEAD(open, descriptor, link);
    else
        free(descriptor); /* closed just now, by a thread */
}

void kit_descriptors_list(struct kit_descriptors *open)
{
    SLIST_INIT(open);
    os_descriptors_visit(add_descriptor, open);
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

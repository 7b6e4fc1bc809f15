/* SPDX-License-Identifier: BSD-2-Clause */
/* Names the descriptors of a heritage; the child closes all others. Never opens or closes one. */
#include "process/heritage.h"

static void add_listeners(struct descriptors *kept, const struct cycle *cycle)
{
    const struct listener *listener;

    STAILQ_FOREACH (listener, &cycle->stream.listeners.list, link)
        for (unsigned i = 0; i < listener->fd_n; i++)
            descriptors_add(kept, listener->fds[i]);
}

/* A module's memory has a descriptor, kept for debuggers; shared memory's are not kept. */
void heritage_add_descriptors(struct heritage *heritage, const struct descriptors *opened)
{
    struct descriptors *kept = &heritage->descriptors;
    const struct cycle *cycle = heritage->cycle;
    const struct bells *bells = heritage->task != TASK_ASK ? heritage->bells : NULL;
    const struct module *module;

    descriptors_add(kept, heritage->channel);
    for (unsigned i = 0; bells != NULL && i < bells->fd_n; i++)
        descriptors_add(kept, bells->fds[i]);
    for (unsigned i = 0; i < core_target_n(&cycle->core); i++)
        descriptors_add_target(kept, core_target(&cycle->core, i));
    if (heritage->task == TASK_ASK)
        descriptors_add(kept, cycle->stream.addresses->segment.fd);
    else
        add_listeners(kept, cycle);
    SLIST_FOREACH (module, &cycle->modules, link)
        descriptors_add(kept, module->memory);
    descriptors_add_all(kept, opened);
}

static bool is_module_memory(const struct cycle *cycle, int fd)
{
    const struct module *module;

    SLIST_FOREACH (module, &cycle->modules, link)
        if (module->memory == fd)
            return true;
    return false;
}

void heritage_keep_opened(
    struct descriptors *opened, const struct descriptors *before, const struct cycle *before_cycle)
{
    for (unsigned i = 0; i < before->n; i++)
        if (!is_module_memory(before_cycle, before->fds[i]))
            descriptors_add(opened, before->fds[i]);
}

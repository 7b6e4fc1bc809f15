/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a configuration, and discards one. The sockets of its listeners belong to
 * process/listeners.c: they may be another configuration's, too. */
#include "process/configuration.h"

#include "process/logs.h"

struct cycle *configuration_load(
    const struct cycle_options *options, struct log *log, int excerpts, struct descriptors *opened)
{
    struct descriptors before = { .fds = NULL };
    struct cycle *cycle;

    descriptors_add_open(&before, NULL);
    cycle = cycle_load(options, log, excerpts);
    if (cycle != NULL)
        descriptors_add_open(opened, &before);
    descriptors_done(&before);
    return cycle;
}

void configuration_discard(struct cycle **cycle, struct log *log)
{
    struct core_settings *core = &(*cycle)->core;

    if ((*cycle)->shared > 0) { /* logs and zones are in use */
        cycle_destroy(cycle);
        return;
    }
    if (log->targets == core->logs) { /* the start has failed, and these were its logs */
        log->targets = NULL;
        log->target_n = 0;
        log_update(log);
    }
    logs_close(core);
    zones_close(&(*cycle)->zones);
    cycle_destroy(cycle);
}

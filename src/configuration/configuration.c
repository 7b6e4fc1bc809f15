/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and discards configurations, and calls the hooks of protocols, server by server in the
 * order of the file, never with memory that a worker can write. Sockets of listeners, which another
 * configuration may share, are configuration/listeners.c's. */
#include "configuration/configuration.h"

#include "configuration/logs.h"
#include "process/role.h"

#include <assert.h>

struct cycle *configuration_load(
    const struct cycle_options *options, struct log *log, int excerpts, struct descriptors *opened)
{
    struct descriptors before = { .fds = NULL };
    struct cycle *cycle;

    descriptors_find_open(&before, NULL);
    cycle = cycle_load(options, log, excerpts);
    if (cycle != NULL)
        descriptors_find_open(opened, &before);
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
    if (log->targets == core->logs) { /* the start has failed, with its logs in use */
        log->targets = NULL;
        log->target_n = 0;
        log_update(log);
    }
    logs_close(core);
    zones_close(&(*cycle)->zones);
    cycle_destroy(cycle);
}

typedef void conf_hook(struct fb_master *master, const void *own);

static void call_hooks(const struct cycle *cycle, struct log *log, bool is_accepted)
{
    struct fb_master master = { .log = log };
    const struct server *server;

    STAILQ_FOREACH (server, &cycle->stream.servers, link) {
        const fb_protocol *protocol = server->protocol;
        conf_hook *hook = NULL;

        master.protocol = protocol;
        if (protocol != NULL)
            hook = is_accepted ? protocol->conf_accepted : protocol->conf_gone;
        if (hook != NULL)
            hook(&master, server->protocol_conf);
    }
}

void configuration_change_hooks(
    const struct cycle **in_force, const struct cycle *next, struct log *log)
{
    const struct cycle *before = *in_force;

    assert(role_is(ROLE_MASTER) && next != before);
    *in_force = next;
    if (next != NULL)
        call_hooks(next, log, true);
    if (before != NULL)
        call_hooks(before, log, false);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls the hooks, server by server in the order of the file. They are given nothing that a worker
 * can write. */
#include "process/conf_hooks.h"

#include "process/role.h"

#include <assert.h>

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

void conf_hooks_change(const struct cycle **in_force, const struct cycle *next, struct log *log)
{
    const struct cycle *before = *in_force;

    assert(role_is(ROLE_MASTER) && next != before);
    *in_force = next;
    if (next != NULL)
        call_hooks(next, log, true);
    if (before != NULL)
        call_hooks(before, log, false);
}

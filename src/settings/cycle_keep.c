/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps listeners that the new configuration has replaced by a wildcard of the same port. Only adds
 * them to the new cycle; no socket is touched here. */
#include "net/listener_open.h"
#include "settings/cycle.h"

#include "net/listener_set.h"

#include <assert.h>

/* The wildcard that takes in the address, or NULL; NULL too where the address has a socket
 * itself. */
static const struct listener *find_wide(
    const struct listeners *listeners, const struct listener *narrow)
{
    if (address_is_wildcard(&narrow->address) ||
        listener_set_at(listeners, &narrow->address) != NULL)
        return NULL;
    return listener_set_overlap(listeners, narrow, NULL);
}

int cycle_keep_listeners(struct cycle *cycle, const struct listeners *before)
{
    const struct listener *old, *wide;
    struct listener *listener;

    assert(before != &cycle->stream.listeners);
    STAILQ_FOREACH (old, &before->list, link) {
        wide = find_wide(&cycle->stream.listeners, old);
        if (wide == NULL)
            continue;
        listener = listener_create(cycle->arena, &old->address, &wide->options);
        if (listener == NULL)
            return -1;
        listener->owner = wide->owner;
        listener->word = wide->word;
        listener_set_add(&cycle->stream.listeners, listener);
    }
    return 0;
}

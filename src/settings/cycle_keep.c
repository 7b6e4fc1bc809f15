/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps listeners that the new configuration has replaced by a wildcard of the same port. Only adds
 * them to the new cycle; no socket is touched here. */
#include "settings/cycle.h"

#include <assert.h>

static bool is_wildcard(const struct listener *listener)
{
    return listener->address.any.sa_family != AF_UNIX && address_is_wildcard(&listener->address);
}

static bool has_wildcard(const struct listeners *listeners)
{
    const struct listener *listener;

    STAILQ_FOREACH (listener, listeners, link)
        if (is_wildcard(listener))
            return true;
    return false;
}

/* The wildcard that takes in the address, or NULL; NULL too where the address has a socket
 * itself. */
static const struct listener *find_wide(
    const struct listeners *listeners, const struct listener *narrow)
{
    const struct listener *listener, *wide = NULL;

    STAILQ_FOREACH (listener, listeners, link) {
        if (address_equal(&listener->address, &narrow->address))
            return NULL;
        if (is_wildcard(listener) && listener_overlaps(listener, narrow))
            wide = listener;
    }
    return wide;
}

int cycle_keep_listeners(struct cycle *cycle, const struct listeners *before)
{
    const struct listener *old, *wide;
    struct listener *listener;

    assert(before != &cycle->stream.listeners);
    if (!has_wildcard(&cycle->stream.listeners))
        return 0;
    STAILQ_FOREACH (old, before, link) {
        wide = is_wildcard(old) ? NULL : find_wide(&cycle->stream.listeners, old);
        if (wide == NULL)
            continue;
        listener = listener_create(cycle->arena, &old->address, &wide->options);
        if (listener == NULL)
            return -1;
        listener->owner = wide->owner;
        listener->word = wide->word;
        STAILQ_INSERT_TAIL(&cycle->stream.listeners, listener, link);
    }
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners that a reload keeps although its configuration names others in their place. */
#include "settings/cycle.h"

#include <assert.h>

static bool is_wildcard(const struct fb_listener *listener)
{
    return listener->address.any.sa_family != AF_UNIX && fb_address_is_wildcard(&listener->address);
}

static bool has_wildcard(const struct fb_listeners *listeners)
{
    const struct fb_listener *listener;

    STAILQ_FOREACH (listener, listeners, link)
        if (is_wildcard(listener))
            return true;
    return false;
}

/* The wildcard that takes in the address, or NULL; NULL too where the address has a socket itself.
 * */
static const struct fb_listener *find_wide(
    const struct fb_listeners *listeners, const struct fb_listener *narrow)
{
    const struct fb_listener *listener, *wide = NULL;

    STAILQ_FOREACH (listener, listeners, link) {
        if (fb_address_equal(&listener->address, &narrow->address))
            return NULL;
        if (is_wildcard(listener) && fb_listener_overlaps(listener, narrow))
            wide = listener;
    }
    return wide;
}

int fb_ports_keep(struct fb_cycle *cycle, const struct fb_listeners *before)
{
    const struct fb_listener *old, *wide;
    struct fb_listener *kept;

    assert(before != &cycle->stream.listeners);
    if (!has_wildcard(&cycle->stream.listeners))
        return 0;
    STAILQ_FOREACH (old, before, link) {
        wide = is_wildcard(old) ? NULL : find_wide(&cycle->stream.listeners, old);
        if (wide == NULL)
            continue;
        kept = fb_listener_create(cycle->arena, &old->address, &wide->options);
        if (kept == NULL)
            return -1;
        kept->owner = wide->owner;
        STAILQ_INSERT_TAIL(&cycle->stream.listeners, kept, link);
    }
    return 0;
}

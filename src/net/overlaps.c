/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/overlaps.h"

#include "base/compiler.h"

/* Those that are opened, live, and lend; each but the first may be NULL. */
struct sides {
    const struct fb_listeners *all[3];
};

static bool is_adopted(const struct sides *sides, const struct fb_listener *listener)
{
    for (size_t i = 1; i < fb_countof(sides->all); i++)
        if (sides->all[i] != NULL && fb_listener_find(sides->all[i], listener) != NULL)
            return true;
    return false;
}

static void allow_with(const struct sides *sides, struct fb_listener *listener,
    const struct fb_listeners *others, bool allow)
{
    const struct fb_listener *other;

    STAILQ_FOREACH (other, others, link) {
        if (!fb_listener_overlaps(listener, other) || is_adopted(sides, listener))
            continue;
        listener->beside = allow;
        fb_listener_allow_others(other, allow);
        if (!allow)
            fb_listener_allow_others(listener, false);
    }
}

/* Which of wildcards and other addresses there are. */
static void note_kinds(const struct fb_listeners *listeners, bool there[2])
{
    const struct fb_listener *listener;

    STAILQ_FOREACH (listener, listeners, link)
        if (listener->address.any.sa_family != AF_UNIX)
            there[fb_address_is_wildcard(&listener->address)] = true;
}

void fb_overlaps_allow(const struct fb_listeners *listeners, const struct fb_listeners *live,
    const struct fb_listeners *lenders, bool allow)
{
    const struct sides sides = { { listeners, live, lenders } };
    struct fb_listener *listener;
    bool there[2] = { false, false };

    for (size_t i = 0; i < fb_countof(sides.all); i++)
        if (sides.all[i] != NULL)
            note_kinds(sides.all[i], there);
    if (!there[0] || !there[1]) /* there may be tens of thousands */
        return;
    STAILQ_FOREACH (listener, listeners, link)
        for (size_t i = 0; i < fb_countof(sides.all); i++)
            if (sides.all[i] != NULL)
                allow_with(&sides, listener, sides.all[i], allow);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs of a wildcard and another address of its port. Responsible for SO_REUSEPORT on both sockets
 * of a pair. Never compares pairs where one of both kinds is missing. */
#include "net/overlaps.h"

#include "base/compiler.h"

#include <assert.h>

/* The listeners that are opened, those of the running configuration, and previous holders of
 * sockets; only the first is never NULL. */
struct candidates {
    const struct listeners *all[3];
};

static bool is_adopted(const struct candidates *candidates, const struct listener *listener)
{
    for (size_t i = 1; i < countof(candidates->all); i++)
        if (candidates->all[i] != NULL && listener_find(candidates->all[i], listener) != NULL)
            return true;
    return false;
}

static void allow_with(const struct candidates *candidates, struct listener *listener,
    const struct listeners *others, bool allow)
{
    const struct listener *other;

    STAILQ_FOREACH (other, others, link) {
        if (!listener_overlaps(listener, other) || is_adopted(candidates, listener))
            continue;
        listener->beside = allow;
        listener_allow_others(other, allow);
        if (!allow)
            listener_allow_others(listener, false);
    }
}

/* Notes whether there are wildcards, there[1], and other addresses, there[0]. */
static void note_kinds(const struct listeners *listeners, bool there[2])
{
    const struct listener *listener;

    STAILQ_FOREACH (listener, listeners, link)
        if (listener->address.any.sa_family != AF_UNIX)
            there[address_is_wildcard(&listener->address)] = true;
}

void overlaps_allow(const struct listeners *listeners, const struct listeners *live,
    const struct listeners *previous, bool allow)
{
    const struct candidates candidates = { { listeners, live, previous } };
    struct listener *listener;
    bool there[2] = { false, false };

    assert(listeners != NULL);
    for (size_t i = 0; i < countof(candidates.all); i++)
        if (candidates.all[i] != NULL)
            note_kinds(candidates.all[i], there);
    if (!there[0] || !there[1]) /* without comparing tens of thousands of pairs */
        return;
    STAILQ_FOREACH (listener, listeners, link)
        for (size_t i = 0; i < countof(candidates.all); i++)
            if (candidates.all[i] != NULL)
                allow_with(&candidates, listener, candidates.all[i], allow);
}

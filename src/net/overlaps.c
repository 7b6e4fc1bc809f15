/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs of a wildcard and another address of its port. Responsible for SO_REUSEPORT on both sockets
 * of a pair. Never looks at listeners of other ports. */
#include "net/overlaps.h"

#include "base/compiler.h"
#include "net/listener_set.h"

#include <assert.h>

/* The listeners that are opened, those of the running configuration, and previous holders of
 * sockets; only the first is never NULL. */
struct candidates {
    const struct listeners *all[3];
};

static bool is_adopted(const struct candidates *candidates, const struct listener *listener)
{
    for (size_t i = 1; i < countof(candidates->all); i++)
        if (candidates->all[i] != NULL && listener_set_find(candidates->all[i], listener) != NULL)
            return true;
    return false;
}

static void allow_with(const struct candidates *candidates, struct listener *listener,
    const struct listeners *others, bool allow)
{
    const struct listener *other = listener_set_overlap(others, listener, NULL);

    if (other == NULL || is_adopted(candidates, listener))
        return;
    for (; other != NULL; other = listener_set_overlap(others, listener, other)) {
        listener->beside = allow;
        listener_allow_others(other, allow);
        if (!allow)
            listener_allow_others(listener, false);
    }
}

void overlaps_allow(const struct listeners *listeners, const struct listeners *live,
    const struct listeners *previous, bool allow)
{
    const struct candidates candidates = { { listeners, live, previous } };
    struct listener *listener;

    assert(listeners != NULL);
    STAILQ_FOREACH (listener, &listeners->list, link)
        for (size_t i = 0; i < countof(candidates.all); i++)
            if (candidates.all[i] != NULL)
                allow_with(&candidates, listener, candidates.all[i], allow);
}

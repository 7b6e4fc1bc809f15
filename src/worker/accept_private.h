/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of accepting: which listeners are watched follows from the phase, the mutex
 * and what is broken, and is brought up to date after each change of one of them. */
#pragma once

#include "worker/accept.h"

/* Watches the listeners that are to be watched now, and no others. */
void accept_update_watching(struct fb_worker *worker);

static inline bool accept_is_suspended(const struct acceptors *accept)
{
    return accept->phase == ACCEPT_PAUSED || accept->phase == ACCEPT_FULL;
}

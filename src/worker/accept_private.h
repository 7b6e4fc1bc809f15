/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of accepting: which listeners are watched follows from the phase, the mutex
 * and what is broken, and is brought up to date after each change of one of them. */
#pragma once

#include "worker/accept.h"

/* Watches the listeners that are to be watched now, and no others. */
void accept_update_watching(struct fb_worker *worker);

/* accept_room.c: Has idle connections closed, soon, for a client that waits at the listener; false:
 * there are none. At once where the listener is not watched any more. */
bool accept_make_room(struct fb_worker *worker, struct acceptor *acceptor);
/* Runs a listener's WRITE event: closes them. */
void accept_room_wanted(struct loop *loop, struct source *source);

static inline bool accept_is_suspended(const struct acceptors *accept)
{
    return accept->phase == ACCEPT_PAUSED || accept->phase == ACCEPT_FULL;
}

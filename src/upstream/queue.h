/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions that wait: for the first answer about a name of their group, or for a server with room.
 *
 * Responsible for the order of service, for the waiting time, and for resuming sessions from the
 * loop, never within a call. Invariant: while sessions of a group wait, the group has a timer,
 * or is due. */
#pragma once

#include "upstream/choice.h"

/* Chooses as choice_next() does, but no server while sessions in the group's queue come first. */
fb_choice queue_choose(struct choice *choice);
/* Lets a session without a server wait, where there is something to wait for. */
fb_choice queue_wait(struct choice *choice);
/* Ends a try as choice_end() does, perhaps with room for waiting sessions; or ends the wait. */
void queue_end(struct choice *choice, fb_try_end how);
/* Looks soon at the waiting sessions: the group's names or servers have changed. */
void queue_wake(struct upstream *upstream);
/* Opens the queue of a worker; -1 after an emerg line. */
int queue_open(struct upstreams *upstreams);
/* Closes the queue, opened or not, without waiting sessions. */
void queue_close(struct upstreams *upstreams);
/* Frees the group's queue, without waiting sessions. */
void queue_forget(struct upstream *upstream);

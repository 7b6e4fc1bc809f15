/* SPDX-License-Identifier: BSD-2-Clause */
/* Passing clients, of a listener or of a turn, to a worker; the accept mutex in a turn. */
#pragma once

#include "worker/acceptors.h"

/* Sets up the bell and the shares of workers; -1 after an emerg line. */
int accept_init_passing(struct worker *worker);
/* Ends passing, before the listeners are released. */
void accept_end_passing(struct worker *worker);

/* Before an event: whether the clients are passed, as earlier ones, or in a burst. */
bool accept_leaves_event(struct worker *worker, struct acceptor *acceptor);
/* After an accept: whether the next clients are passed, here or at all shared listeners. */
bool accept_leaves_next(struct worker *worker, struct acceptor *acceptor);
/* Whether a client without room here is left to a worker that has. */
bool accept_leaves_short(struct worker *worker, struct acceptor *acceptor);
/* After accepts, where the kernel wakes the first worker that waits: goes behind the others, if
 * clients are `left` to them, or a worker has fewer. A worker with short sessions stays in front,
 * with warm caches. */
void accept_yield(struct worker *worker, struct acceptor *acceptor, bool left);
/* Wakes the worker with the fewest clients; `fd`: the listener where some wait, or -1. */
void accept_wake_another(struct worker *worker, int fd);

/* Tries the mutex before the wait, and watches the listeners or not; the time to wait, in ms. */
int accept_before(struct worker *worker, int timeout);
/* Gives the mutex back, after the accept queue. */
void accept_after(struct worker *worker);
/* Whether a rival has taken the mutex, and the shared listeners with it. */
bool accept_steps_back(struct worker *worker, const struct acceptor *acceptor);

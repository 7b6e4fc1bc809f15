/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of accepting: which listeners are watched follows from the phase, the mutex,
 * what is broken and what was left to others, and is brought up to date after each change of one
 * of them. */
#pragma once

#include "worker/worker.h"

/* Watches the listeners that are to be watched now, and no others. */
void accept_update_watching(struct worker *worker);
/* Does so for one listener. */
void accept_watch(struct worker *worker, struct acceptor *acceptor);
/* Whether other workers accept from the same listeners. */
static inline bool accept_is_shared(const struct worker *worker)
{
    return worker->role == ROLE_WORKER && worker->heritage->task != TASK_ASK &&
           worker->cycle->core.worker_processes > 1;
}

/* accept_turn.c: Whether another worker has taken the mutex, because we have stood still for too
 * long: then the listeners that it watches are left to it. */
bool accept_steps_back(struct worker *worker, const struct acceptor *acceptor);
/* accept_turn.c: Whether accept_disabled leaves clients to others. It would only lose time where no
 * worker has fewer connections than we do. */
bool accept_is_disabled(const struct worker *worker);
/* Publishes that there is no room for a client, until a slot is free. */
void accept_publish_crowding(struct worker *worker);

/* Listeners that were shut down (accept_mend.c) */

/* Leaves a listener alone that was shut down, whose event would come again and again, and has it
 * listen again: by the master, which alone may. */
void accept_note_broken(struct worker *worker, struct acceptor *acceptor);
/* An event has brought no client: another worker was faster, or somebody has shut a unix socket
 * down. */
void accept_note_empty(struct worker *worker, struct acceptor *acceptor);
/* The timer `mend`: tries the broken listeners again. */
void accept_mend_expired(struct loop *loop, struct timer *timer);

/* Clients that are left to other workers (accept_pass.c) */

/* Sets up the bell, and what is known of other workers; -1 after an emerg line. */
int accept_init_passing(struct worker *worker);
/* Accepting ends. */
void accept_end_passing(struct worker *worker);
/* After an accept: whether the clients behind it are left to others, at this listener or, with the
 * mutex, at all that are shared. */
bool accept_leaves_next(struct worker *worker, struct acceptor *acceptor);
/* An event of a listener: whether it is left to others, as others are already, or in a burst. */
bool accept_leaves_event(struct worker *worker, struct acceptor *acceptor);
/* A client waits at the listener and has no room here: whether it is left to a worker that has. */
bool accept_leaves_short(struct worker *worker, struct acceptor *acceptor);
/* The mutex was given back: leaves it to the worker that has room. */
void accept_pass_turn(struct worker *worker);
/* Before the mutex is tried: whether it is left to others, for accept_leaving_ms() at most. */
bool accept_leaves_turn(struct worker *worker);
int64_t accept_leaving_ms(void);
/* After an accept, where the kernel wakes the first of the workers that wait at this listener: goes
 * behind the others, if clients are `left` to them, or one of them has fewer. Whose sessions are
 * short goes on, because what it needs for them is in the processor's caches. */
void accept_yield(struct worker *worker, struct acceptor *acceptor, bool left);
/* Gives a queue that was lent back to its worker, which is faster again. */
void accept_give_back(struct worker *worker, struct acceptor *acceptor);
/* Watches all queues of other workers as if they were lent: clients may wait there for room, or for
 * a worker that is gone. */
void accept_borrow(struct worker *worker);
bool accept_has_lent(const struct acceptors *accept);
/* Wakes the worker with the fewest clients, because this one takes none for a while; `fd`: the
 * listener where some wait, or -1. */
void accept_wake_another(struct worker *worker, int fd);

/* accept_room.c: Logs why accepting is suspended, once in a while. */
void accept_note_shortage(struct worker *worker, enum accept_phase phase, int error);
/* accept_room.c: Leaves a client that waits at the listener to a worker that has room, or has idle
 * connections closed for it, soon; false: there are none. At once where the listener is not watched
 * any more. */
bool accept_make_room(struct worker *worker, struct acceptor *acceptor);
/* Runs a listener's WRITE event: closes them. */
void accept_room_wanted(struct loop *loop, struct source *source);

static inline bool accept_is_suspended(const struct acceptors *accept)
{
    return accept->phase == ACCEPT_PAUSED || accept->phase == ACCEPT_FULL;
}

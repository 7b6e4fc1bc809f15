/* SPDX-License-Identifier: BSD-2-Clause */
/* The accept mutex in a turn of the loop: tried before the wait, given back after the accept queue.
 * Never accepts. */
#include "worker/accept_turn.h"

#include "base/compiler.h"
#include "worker/accept_pass.h"
#include "worker/worker.h"

#include <assert.h>

/* Bound of accept_mutex_delay between two looks for waiting clients. */
#define LOOK_MS 1000

/* Counts a turn of accept_disabled; the time to leave the mutex, accept_mutex_delay in all. */
static int64_t back_off(struct acceptors *accept, int64_t delay)
{
    int64_t turns = accept->disabled--;

    assert(turns > 0);
    return turns < delay ? delay / turns : 1;
}

/* Whether a client waits at a listener that the mutex's holder watches. */
static bool clients_wait(const struct acceptors *accept)
{
    for (unsigned i = 0; i < accept->n; i++) {
        const struct acceptor *acceptor = accept->list[i];

        if (acceptor->kind == ACCEPTOR_SHARED && acceptor->state != ACCEPTOR_BROKEN &&
            acceptor->source.io->waits(&acceptor->source))
            return true;
    }
    return false;
}

/* Tries the mutex, or `leaves` the mutex unless in vain; the time to the next try, at most
 * `delay`. */
static int64_t try_mutex(struct worker *worker, bool leaves, int64_t delay)
{
    struct acceptors *accept = &worker->accept;
    uint64_t now = worker->stream.net.loop.clock.mono_ms;
    enum accept_mutex_status status = accept_mutex_try(&accept->mutex, now, leaves);
    int64_t wait = (int64_t)accept_mutex_wait(&accept->mutex, now);

    if (status == ACCEPT_MUTEX_DUE && (accept->invited || clients_wait(accept)))
        status = accept_mutex_rob(&accept->mutex, now);
    else if (status == ACCEPT_MUTEX_DUE)
        wait = LOOK_MS;
    accept->invited = false;
    if (status >= ACCEPT_MUTEX_ACQUIRED)
        acceptors_set_turn(accept, accept->turn == TURN_OVER ? TURN_WATCHING : TURN_TAKEN);
    debug_loop(&worker->stream.net.loop, "accept mutex %s",
        acceptors_hold_mutex(accept) ? "taken"
        : leaves                     ? "left to other workers"
                                     : "is another worker's");
    if (unlikely(status == ACCEPT_MUTEX_DAMAGED)) {
        channel_end_send(&worker->to_master, MESSAGE_MUTEX_DAMAGED);
        log_debug_point(&worker->log, "the accept mutex was damaged");
    }
    return wait < delay ? wait : delay;
}

int accept_before(struct worker *worker, int timeout)
{
    struct acceptors *accept = &worker->accept;
    int64_t delay = worker->cycle->events.accept_mutex_delay;
    bool leaves = accept_is_disabled(worker), is_open = acceptors_are_open(accept);

    assert(accept->sharing == SHARING_MUTEX);
    assert(!acceptors_hold_mutex(accept)); /* the last turn has given it back */
    if (!is_open && !acceptors_are_suspended(accept))
        return timeout;
    if (leaves && !accept->was_disabled)
        accept_wake_another(worker, -1);
    accept->was_disabled = leaves;
    if (leaves)
        delay = back_off(accept, delay);
    else if (is_open)
        leaves = accept_leaves_turn(worker, &delay);
    if (is_open)
        delay = try_mutex(worker, leaves, delay);
    if (accept->turn == TURN_TAKEN || accept->turn == TURN_OVER)
        acceptors_update(worker);
    return accept->turn == TURN_NONE && (timeout == -1 || timeout > delay) ? (int)delay : timeout;
}

void accept_after(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;

    assert(acceptors_hold_mutex(accept));
    accept_mutex_release(&accept->mutex, worker->stream.net.loop.clock.mono_ms);
    acceptors_set_turn(accept, accept->turn == TURN_WATCHING ? TURN_OVER : TURN_NONE);
    debug_loop(&worker->stream.net.loop, "accept mutex given back");
    if (unlikely(accept->passing == PASSING_SHORT))
        accept_pass_turn(worker);
    if (unlikely(acceptors_are_suspended(accept))) /* in this turn */
        accept_wake_another(worker, accept->short_fd);
}

bool accept_steps_back(struct worker *worker, const struct acceptor *acceptor)
{
    struct acceptors *accept = &worker->accept;

    assert(acceptors_hold_mutex(accept));
    if (acceptor->kind != ACCEPTOR_SHARED || !accept_mutex_is_lost(&accept->mutex))
        return false;
    accept_after(worker);
    acceptors_update(worker);
    return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The accept mutex in a turn of the loop: tried before the wait, given back after the accept queue,
 * and given up for good when the master says so. Nothing here accepts. */
#include "base/compiler.h"
#include "worker/accept_private.h"
#include "worker/commands.h"
#include "worker/worker.h"

#include <assert.h>

/* A worker that waits for the mutex looks whether clients wait no later than this after the last
 * time, whatever accept_mutex_delay is. */
#define LOOK_MS 1000

/* Counts one turn of accept_disabled, in which the mutex is left to others, and returns how long it
 * may wait: accept_mutex_delay divided by the turns that are left. */
static int64_t back_off(struct acceptors *accept, int64_t delay)
{
    int64_t turns = accept->disabled--;

    assert(turns > 0);
    return turns < delay ? delay / turns : 1;
}

bool accept_is_disabled(const struct worker *worker)
{
    uint64_t totals[COUNTERS], ours = worker->stream.net.client_n;

    if (worker->accept.disabled <= 0)
        return false;
    shared_totals(worker->heritage->shared, totals);
    return ours * (uint64_t)worker->cycle->core.worker_processes > totals[COUNTER_ACTIVE];
}

/* Whether a client waits at a listener that the mutex's holder watches. */
static bool clients_wait(const struct acceptors *accept)
{
    for (unsigned i = 0; i < accept->n; i++) {
        const struct acceptor *acceptor = accept->list[i];

        if (!acceptor->own && !acceptor->broken && acceptor->source.io->waits(&acceptor->source))
            return true;
    }
    return false;
}

/* Tries the mutex; `leaves`: it is left to others unless nobody takes it. Returns how long to wait
 * for the next try, `delay` at most. */
static int64_t try_mutex(struct worker *worker, uint64_t now, bool leaves, int64_t delay)
{
    struct acceptors *accept = &worker->accept;
    enum accept_mutex_status status = accept_mutex_try(&accept->turns, now, leaves);
    int64_t wait = (int64_t)accept_mutex_wait(&accept->turns, now);

    if (status == ACCEPT_MUTEX_DUE && (accept->invited || clients_wait(accept)))
        status = accept_mutex_rob(&accept->turns, now);
    else if (status == ACCEPT_MUTEX_DUE)
        wait = LOOK_MS;
    accept->holds_mutex = status >= ACCEPT_MUTEX_ACQUIRED;
    accept->invited = false;
    debug_loop(&worker->stream.net.loop, "accept mutex %s",
        accept->holds_mutex ? "taken"
        : leaves            ? "left to other workers"
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
    uint64_t now = worker->stream.net.loop.clock.mono_ms;
    int64_t delay = worker->cycle->events.accept_mutex_delay;
    bool leaves, left = accept->left;

    assert(accept->mutex && !accept->holds_mutex); /* the last turn has given it back */
    if (accept->phase != ACCEPT_OPEN && !accept_is_suspended(accept))
        return timeout;
    accept->left = leaves = accept_is_disabled(worker);
    if (leaves && !left)
        accept_wake_another(worker, -1);
    if (leaves)
        delay = back_off(accept, delay);
    else if (accept->phase == ACCEPT_OPEN && accept_leaves_turn(worker)) {
        leaves = true;
        delay = delay < accept_leaving_ms() ? delay : accept_leaving_ms();
    }
    if (accept->phase == ACCEPT_OPEN)
        delay = try_mutex(worker, now, leaves, delay);
    if (accept->holds_mutex != accept->watches_shared)
        accept_update_watching(worker);
    return !accept->holds_mutex && (timeout == -1 || timeout > delay) ? (int)delay : timeout;
}

void accept_after(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;

    assert(accept->mutex && accept->holds_mutex);
    accept_mutex_release(&accept->turns, worker->stream.net.loop.clock.mono_ms);
    accept->holds_mutex = false;
    debug_loop(&worker->stream.net.loop, "accept mutex given back");
    if (unlikely(accept->waits))
        accept_pass_turn(worker);
    if (unlikely(accept->wakes)) {
        accept->wakes = false;
        accept_wake_another(worker, accept->short_fd);
    }
}

void accept_leave_mutex(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;

    assert(!accept->holds_mutex); /* messages come when the mutex was given back */
    if (!accept->mutex || accept->phase == ACCEPT_RELEASED)
        return;
    accept->mutex = accept->watches_shared = false;
    accept_update_watching(worker);
}

bool accept_steps_back(struct worker *worker, const struct acceptor *acceptor)
{
    struct acceptors *accept = &worker->accept;

    if (!accept->holds_mutex || acceptor->own || !accept_mutex_is_lost(&accept->turns))
        return false;
    accept_after(worker);
    accept_update_watching(worker);
    return true;
}

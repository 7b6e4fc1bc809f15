/* SPDX-License-Identifier: BSD-2-Clause */
/* Watches the listeners of a worker, resumes accepting, and has broken listeners mended. */
#include "worker/acceptors.h"

#include "net/listener_socket.h"
#include "os/descriptor.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>

/* Retry interval for listeners after a shutdown(). */
#define MEND_MS 100

/* Reports of broken listeners; the master looks at all listeners after each report. */
static const struct token_rate report_rate = { .burst = 1024, .per_second = 100 };

static void awaited_slot_released(struct net *net);

void acceptors_set_phase(struct worker *worker, enum accept_phase phase)
{
    enum {
        OPEN = 1u << ACCEPT_OPEN,
        RELEASED = 1u << ACCEPT_RELEASED,
        NO_MORE = 1u << ACCEPT_PAUSED | 1u << ACCEPT_FULL | RELEASED,
    };
    static const unsigned legal[] = {
        [ACCEPT_CLOSED] = OPEN | RELEASED,
        [ACCEPT_OPEN] = 1u << ACCEPT_CROWDED | NO_MORE,
        [ACCEPT_CROWDED] = OPEN | NO_MORE,
        /* while listeners are released, a suspended worker accepts, and may be suspended again */
        [ACCEPT_PAUSED] = OPEN | NO_MORE,
        [ACCEPT_FULL] = OPEN | NO_MORE,
        [ACCEPT_RELEASED] = 0,
    };
    static const enum slot_accepting published[] = {
        [ACCEPT_CLOSED] = SLOT_CLOSED,
        [ACCEPT_OPEN] = SLOT_OPEN,
        [ACCEPT_CROWDED] = SLOT_OPEN,
        [ACCEPT_PAUSED] = SLOT_PAUSED,
        [ACCEPT_FULL] = SLOT_FULL,
        [ACCEPT_RELEASED] = SLOT_CLOSED,
    };
    struct acceptors *accept = &worker->accept;
    struct slot *slot = shared_slot(worker->heritage->shared, worker->heritage->slot);
    bool awaits_slot = phase == ACCEPT_FULL || phase == ACCEPT_CROWDED;

    assert(legal[accept->phase] & 1u << phase);
    accept->phase = phase;
    worker->stream.net.awaited = awaits_slot ? awaited_slot_released : NULL;
    atomic_store_explicit(&slot->load.accepting, published[phase], memory_order_relaxed);
    accept_share_publish(&accept->share, phase == ACCEPT_OPEN      ? SLOT_TAKES
                                         : phase == ACCEPT_CROWDED ? SLOT_IS_CROWDED
                                                                   : SLOT_TAKES_NONE);
}

void acceptors_set_turn(struct acceptors *accept, enum accept_turn turn)
{
    static const unsigned legal[] = {
        [TURN_NONE] = 1u << TURN_TAKEN,
        [TURN_TAKEN] = 1u << TURN_WATCHING | 1u << TURN_NONE,
        [TURN_WATCHING] = 1u << TURN_TAKEN | 1u << TURN_OVER,
        [TURN_OVER] = 1u << TURN_WATCHING | 1u << TURN_NONE,
    };

    assert(accept->sharing == SHARING_MUTEX && (legal[accept->turn] & 1u << turn));
    accept->turn = turn;
}

static void set_acceptor_state(
    struct acceptors *accept, struct acceptor *acceptor, enum acceptor_state state)
{
    assert((acceptor->state == ACCEPTOR_ACTIVE) != (state == ACCEPTOR_ACTIVE));
    assert(state != ACCEPTOR_DORMANT || acceptor->kind == ACCEPTOR_SIBLING);
    accept->yielded_n -= acceptor->state == ACCEPTOR_YIELDED;
    accept->yielded_n += state == ACCEPTOR_YIELDED;
    acceptor->state = state;
}

/* ---- Watching ---- */

static bool acceptor_is_wanted(const struct acceptors *accept, const struct acceptor *acceptor)
{
    return acceptors_are_open(accept) && acceptor->state == ACCEPTOR_ACTIVE &&
           (!acceptor_needs_mutex(accept, acceptor) || accept->turn == TURN_WATCHING ||
               accept->turn == TURN_OVER);
}

/* Watches the listener or not; for want of kernel memory tries again later. */
static void watch_acceptor(struct worker *worker, struct acceptor *acceptor)
{
    struct acceptors *accept = &worker->accept;
    struct loop *loop = &worker->stream.net.loop;

    if (!acceptor_is_wanted(accept, acceptor))
        source_disarm_listener(loop, &acceptor->source);
    else if (source_arm_listener(
                 loop, &acceptor->source, acceptor_is_exclusive(accept, acceptor)) == -1)
        timer_set(loop, &accept->resume, (uint64_t)worker->cycle->events.accept_mutex_delay);
}

void acceptors_update(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;
    bool suspended = acceptors_are_suspended(accept);

    assert(accept->phase != ACCEPT_RELEASED);
    if (accept->turn == TURN_OVER)
        acceptors_set_turn(accept, TURN_NONE);
    else if (accept->turn == TURN_TAKEN && !suspended)
        acceptors_set_turn(accept, TURN_WATCHING);
    else if (accept->turn == TURN_WATCHING && suspended)
        acceptors_set_turn(accept, TURN_TAKEN);
    ACCEPTORS_FOREACH (acceptor, accept)
        watch_acceptor(worker, acceptor);
}

void acceptor_change(struct worker *worker, struct acceptor *acceptor, enum acceptor_state state)
{
    set_acceptor_state(&worker->accept, acceptor, state);
    watch_acceptor(worker, acceptor);
}

void acceptor_rejoin(struct worker *worker, struct acceptor *acceptor)
{
    struct loop *loop = &worker->stream.net.loop;

    source_disarm_listener(loop, &acceptor->source);
    watch_acceptor(worker, acceptor);
    acceptor->rejoined_ms = loop->clock.mono_ms;
}

void acceptors_wake_dormant(struct worker *worker)
{
    if (worker->accept.sharing == SHARING_EXCLUSIVE)
        return;
    ACCEPTORS_FOREACH (acceptor, &worker->accept)
        if (acceptor->state == ACCEPTOR_DORMANT)
            acceptor_change(worker, acceptor, ACCEPTOR_ACTIVE);
}

void acceptors_disarm(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;

    ACCEPTORS_FOREACH (acceptor, accept) {
        source_disarm_listener(&worker->stream.net.loop, &acceptor->source);
        if (acceptor->state == ACCEPTOR_YIELDED || acceptor->state == ACCEPTOR_BROKEN)
            set_acceptor_state(accept, acceptor, ACCEPTOR_ACTIVE);
        if (acceptor->kind == ACCEPTOR_SIBLING && acceptor->state == ACCEPTOR_ACTIVE)
            set_acceptor_state(accept, acceptor, ACCEPTOR_DORMANT);
    }
    source_release_disarmed(&worker->stream.net.loop);
}

/* ---- Resuming ---- */

static void resume_accepting(struct worker *worker)
{
    assert(acceptors_are_suspended(&worker->accept));
    timer_del(&worker->stream.net.loop, &worker->accept.resume);
    acceptors_set_phase(worker, ACCEPT_OPEN);
    acceptors_wake_dormant(worker);
    acceptors_update(worker);
}

static void resume_expired(struct loop *loop, struct timer *timer)
{
    struct worker *worker = worker_of_loop(loop);

    assert(timer == &worker->accept.resume);
    if (acceptors_are_suspended(&worker->accept))
        resume_accepting(worker);
    else
        acceptors_update(worker); /* a listener could not be watched */
}

/* Runs when a slot has become free in ACCEPT_FULL or ACCEPT_CROWDED. */
static void awaited_slot_released(struct net *net)
{
    struct worker *worker = worker_of_loop(&net->loop);
    struct acceptors *accept = &worker->accept;

    assert(accept->phase == ACCEPT_FULL || accept->phase == ACCEPT_CROWDED);
    if (net_lacks_slots(net, accept->short_slots))
        return;
    if (accept->phase == ACCEPT_FULL)
        resume_accepting(worker);
    else
        acceptors_set_phase(worker, ACCEPT_OPEN);
}

/* ---- Broken listeners ---- */

void acceptor_break(struct worker *worker, struct acceptor *acceptor)
{
    struct loop *loop = &worker->stream.net.loop;

    acceptor_change(worker, acceptor, ACCEPTOR_BROKEN);
    timer_set(loop, &worker->accept.mend, MEND_MS);
    if (token_bucket_take(&worker->accept.reports, &report_rate, loop->clock.mono_ms))
        channel_end_try(&worker->to_master, &(struct channel_message) { MESSAGE_LISTENER_BROKEN,
                                                (uint32_t)acceptor->source.fd, -1 });
}

static void acceptor_mend_expired(struct loop *loop, struct timer *timer)
{
    struct worker *worker = worker_of_loop(loop);

    assert(timer == &worker->accept.mend);
    ACCEPTORS_FOREACH (acceptor, &worker->accept) {
        if (acceptor->state != ACCEPTOR_BROKEN)
            continue;
        if (worker->role == ROLE_SINGLE &&
            listener_is_broken(acceptor->listener, acceptor->source.fd))
            listener_mend(acceptor->listener, acceptor->source.fd, &worker->cycle->stream.listeners,
                acceptor->listener->kept_n == 0, &worker->log);
        acceptor_change(worker, acceptor, ACCEPTOR_ACTIVE);
    }
}

void acceptors_replace_socket(struct worker *worker, uint32_t number, int fd)
{
    struct acceptors *accept = &worker->accept;

    assert(fd >= 0);
    ACCEPTORS_FOREACH (acceptor, accept) {
        if ((uint32_t)acceptor->source.fd != number)
            continue;
        /* the mechanism would go on to watch the old socket */
        source_disarm_listener(&worker->stream.net.loop, &acceptor->source);
        if (acceptor->state == ACCEPTOR_BROKEN)
            set_acceptor_state(accept, acceptor, ACCEPTOR_ACTIVE);
        if (descriptor_replace(fd, acceptor->source.fd) == -1)
            log_write(&worker->log, LEVEL_ALERT, errno, "listener %s could not be replaced",
                acceptor->listener->text);
        acceptors_update(worker);
    }
}

/* ---- Beginning, end and check ---- */

void acceptors_init(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;
    const struct events_settings *events = &worker->cycle->events;
    bool has_siblings = worker->role == ROLE_WORKER && worker->heritage->task != TASK_ASK &&
                        worker->cycle->core.worker_processes > 1;

    assert(worker->phase == WORKER_STARTING);
    assert(STAILQ_EMPTY(&accept->list) && accept->phase == ACCEPT_CLOSED);
    STAILQ_INIT(&accept->list);
    accept->sharing = !has_siblings                  ? SHARING_NONE
                      : events->mechanism->exclusive ? SHARING_EXCLUSIVE
                      : events->accept_mutex         ? SHARING_MUTEX
                                                     : SHARING_ALL;
    accept->resume.expired = resume_expired;
    accept->mend.expired = acceptor_mend_expired;
}

void acceptors_leave_mutex(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;

    assert(!acceptors_hold_mutex(accept)); /* messages come when the mutex was given back */
    if (accept->sharing != SHARING_MUTEX || accept->phase == ACCEPT_RELEASED)
        return;
    if (accept->turn == TURN_OVER)
        acceptors_set_turn(accept, TURN_NONE);
    accept->sharing = SHARING_ALL;
    acceptors_update(worker);
}

void acceptors_check(const struct acceptors *accept)
{
    unsigned yielded_n = 0;

    assert(accept->phase != ACCEPT_RELEASED || STAILQ_EMPTY(&accept->list));
    assert(accept->sharing == SHARING_MUTEX || accept->turn == TURN_NONE);
    assert(accept->sharing != SHARING_NONE || accept->balance == BALANCE_NONE);
    assert(accept->balance == BALANCE_NONE || accept->bell != NULL);
    assert(accept->woken == SHARE_NOBODY || timer_is_set(&accept->back));
    assert(timer_is_set(&accept->back)
               ? accept->passing == PASSING_CLIENTS || accept->passing == PASSING_SHORT
               : accept->passing != PASSING_CLIENTS);
    assert(!acceptors_are_suspended(accept) || timer_is_set(&accept->resume));
    assert(!acceptors_are_suspended(accept) || accept->shortage_at != 0);
    ACCEPTORS_FOREACH (acceptor, accept) {
        const struct source *source = &acceptor->source;
        bool wanted = acceptor_is_wanted(accept, acceptor);

        assert(source->in_use && source->fd != -1 && source->queue == QUEUE_ACCEPT);
        assert(!source->listening || wanted);
        assert(source->listening || !wanted || timer_is_set(&accept->resume));
        assert(acceptor->state != ACCEPTOR_BROKEN || timer_is_set(&accept->mend));
        assert(acceptor->kind != ACCEPTOR_SIBLING || accept->balance == BALANCE_CLIENTS);
        yielded_n += acceptor->state == ACCEPTOR_YIELDED;
    }
    assert(yielded_n == accept->yielded_n);
    assert(accept->yielded_n == 0 || timer_is_set(&accept->back));
}

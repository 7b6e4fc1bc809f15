/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes: leaves the clients that come next to the worker with the fewest, whose bell is rung, and
 * takes them again soon after if nobody has. A worker steps back from one listener at a time, and
 * for a time that it counts itself: whatever others publish, or do not do, no client waits longer
 * than that. */
#include "worker/accept_private.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>

/* A worker that was rung has so long to take the clients of a listener, or the accept mutex. */
#define BACK_MS 2
#define MUTEX_BACK_MS 5
/* Clients of a burst come within such a time. */
#define BURST_MS 1
/* Before idle connections are closed for a client for whom another worker has said to have room. */
#define SHORT_BACK_MS 10
/* No more listeners are looked at when clients wait at any of them. */
#define ANY_MOST 64

static void ring(struct worker *worker, int fd, uint32_t to)
{
    accept_share_publish_pass(&worker->accept.share, fd, to);
    bells_ring(worker->heritage->bells, to);
}

/* Ends a step back: the listeners are watched again, behind all others that watch them. */
static void come_back(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;

    for (unsigned i = 0; accept->aside_n > 0; i++) {
        assert(i < accept->n);
        if (!accept->list[i]->aside)
            continue;
        accept->list[i]->aside = false;
        accept->aside_n--;
        accept_watch(worker, accept->list[i]);
    }
}

/* Leaves a listener to worker `to`, or (SHARE_NOBODY) to whoever waits there. */
static void leave_listener(struct worker *worker, struct acceptor *acceptor, uint32_t to)
{
    struct acceptors *accept = &worker->accept;

    assert(timer_is_set(&accept->back) && !acceptor->aside);
    acceptor->aside = true;
    accept->aside_n++;
    accept_watch(worker, acceptor);
    if (to != SHARE_NOBODY)
        ring(worker, accept->aside_n == 1 ? acceptor->source.fd : SHARE_ANY, to);
}

/* Leaves the listener, or the accept mutex (NULL), to another worker for a while. */
static void pass(struct worker *worker, struct acceptor *acceptor, uint32_t to)
{
    struct acceptors *accept = &worker->accept;

    assert(accept->bell != NULL && to != SHARE_NOBODY);
    accept->rung = to;
    timers_arm(&worker->stream.net.loop.timers, &accept->back,
        accept->waits      ? SHORT_BACK_MS
        : acceptor != NULL ? BACK_MS
                           : MUTEX_BACK_MS);
    counters_add(worker->stream.net.counters, COUNTER_PASSES, 1);
    if (acceptor != NULL)
        leave_listener(worker, acceptor, to);
    else
        ring(worker, -1, to);
}

/* A client comes right behind another that we have taken, as the next of a burst, and was reported
 * to us before we were behind the others: who has fewer takes it. An isolated client is not worth
 * that. */
static bool leaves_burst(struct worker *worker, struct acceptor *acceptor)
{
    struct acceptors *accept = &worker->accept;
    uint64_t now = worker->stream.net.loop.clock.mono_ms;
    uint32_t to;

    if (!accept->even || !accept->exclusive || acceptor->own || accept->phase != ACCEPT_OPEN ||
        now - accept->accepted_ms > BURST_MS ||
        worker->stream.net.client_n <= accept->share.least ||
        accept_share_judge(&accept->share, worker->stream.net.client_n, false, now, &to) !=
            SHARE_PASS)
        return false;
    pass(worker, acceptor, to);
    return true;
}

/* Steps back from the listener, and wakes nobody. */
static void step_aside(struct worker *worker, struct acceptor *acceptor)
{
    timers_arm(&worker->stream.net.loop.timers, &worker->accept.back, BACK_MS);
    leave_listener(worker, acceptor, SHARE_NOBODY);
    counters_add(worker->stream.net.counters, COUNTER_YIELDS, 1);
}

bool accept_leaves_event(struct worker *worker, struct acceptor *acceptor)
{
    struct acceptors *accept = &worker->accept;

    if (!timer_is_set(&accept->back))
        return leaves_burst(worker, acceptor);
    if ((accept->mutex && !acceptor->own) || (acceptor->own && !accept->even))
        return false;
    leave_listener(worker, acceptor, accept->rung);
    return true;
}

static void back_expired(struct loop *loop, struct timer *timer)
{
    struct worker *worker = worker_of_loop(loop);
    struct acceptors *accept = &worker->accept;

    assert(timer == &accept->back);
    if (accept->rung != SHARE_NOBODY)
        accept_share_note_answer(&accept->share, accept->rung);
    if (accept->waits)
        accept_share_note_refusal(&accept->share);
    accept->waits = false;
    accept->rung = SHARE_NOBODY;
    accept->returned = true;
    come_back(worker);
}

void accept_yield(struct worker *worker, struct acceptor *acceptor, bool left)
{
    const struct acceptors *accept = &worker->accept;
    bool behind = left || acceptor->foreign;

    worker->accept.accepted_ms = worker->stream.net.loop.clock.mono_ms;
    if (!acceptor->own && !behind)
        behind = !accept->even || worker->stream.net.client_n > accept->share.least;
    if (!behind || !acceptor->source.listening ||
        !(acceptor->own ? accept->stand_ins : accept->exclusive))
        return;
    source_disarm_listener(&worker->stream.net.loop, &acceptor->source);
    accept_watch(worker, acceptor);
}

void accept_give_back(struct worker *worker, struct acceptor *acceptor)
{
    assert(acceptor->foreign && acceptor->lent);
    acceptor->lent = false;
    accept_watch(worker, acceptor);
}

/* Whether others come next: with accept_share by their numbers of clients, else by our free
 * slots. */
static enum share_verdict judge(
    struct worker *worker, const struct acceptor *acceptor, uint32_t *to)
{
    struct acceptors *accept = &worker->accept;

    if (accept->even)
        return accept_share_judge(&accept->share, worker->stream.net.client_n,
            acceptor->own ? accept->stand_ins : accept->exclusive,
            worker->stream.net.loop.clock.mono_ms, to);
    if (!accept->makes_way || acceptor->own || accept->bell == NULL || !accept_is_disabled(worker))
        return SHARE_FAIR;
    *to = accept_share_find_least(&accept->share);
    return *to == SHARE_NOBODY ? SHARE_FAIR : SHARE_PASS;
}

bool accept_leaves_next(struct worker *worker, struct acceptor *acceptor)
{
    struct acceptors *accept = &worker->accept;
    bool turns = accept->mutex && !acceptor->own;
    enum share_verdict verdict;
    uint32_t to;

    accept->returned = false;
    if (accept->phase != ACCEPT_OPEN)
        return false;
    verdict = judge(worker, acceptor, &to);
    if (turns) /* the mutex is left in the next turn, when it was given back */
        accept->to = verdict == SHARE_FAIR ? SHARE_NOBODY : to;
    else if (verdict == SHARE_PASS)
        pass(worker, acceptor, to);
    else if (verdict == SHARE_ASIDE)
        step_aside(worker, acceptor);
    else if (verdict == SHARE_YIELD)
        counters_add(worker->stream.net.counters, COUNTER_YIELDS, 1);
    return verdict != SHARE_FAIR;
}

bool accept_leaves_short(struct worker *worker, struct acceptor *acceptor)
{
    struct acceptors *accept = &worker->accept;
    bool turns = accept->mutex && !acceptor->own;
    uint32_t to;

    if (accept->bell == NULL || (acceptor->own && !accept->even))
        return false;
    accept_publish_crowding(worker); /* before the others' word is read */
    if (timer_is_set(&accept->back))
        return !turns && accept_leaves_event(worker, acceptor);
    to = accept_share_find_room(&accept->share, worker->stream.net.loop.clock.mono_ms);
    if (to == SHARE_NOBODY)
        return false;
    accept->waits = true;
    accept->returned = false;
    if (turns)
        accept->to = to;
    else
        pass(worker, acceptor, to);
    return true;
}

void accept_pass_turn(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;

    if (accept->to == SHARE_NOBODY || timer_is_set(&accept->back))
        return;
    pass(worker, NULL, accept->to);
    accept->to = SHARE_NOBODY;
}

/* Whether the mutex, which is free, is another worker's to take: judged by what has changed since
 * the latest accept too, but once in a millisecond at most. */
static bool has_too_many(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;
    uint64_t now = worker->stream.net.loop.clock.mono_ms;

    if (accept->to != SHARE_NOBODY)
        return true;
    if (accept->judged_ms == now)
        return false;
    accept->judged_ms = now;
    return accept_share_judge(
               &accept->share, worker->stream.net.client_n, false, now, &accept->to) == SHARE_PASS;
}

bool accept_leaves_turn(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;
    bool leaves;

    assert(accept->mutex);
    if (accept->returned)
        return false;
    if (timer_is_set(&accept->back))
        return true;
    if (!accept->even || !accept_mutex_is_free(&accept->turns))
        return false;
    leaves = has_too_many(worker);
    if (leaves)
        pass(worker, NULL, accept->to);
    accept->to = SHARE_NOBODY;
    return leaves;
}

int64_t accept_leaving_ms(void)
{
    return MUTEX_BACK_MS;
}

void accept_borrow(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;

    if (!accept->even || accept->stand_ins)
        return;
    for (unsigned i = 0; i < accept->n; i++) {
        if (!accept->list[i]->foreign)
            continue;
        accept->list[i]->lent = true;
        accept_watch(worker, accept->list[i]);
    }
}

bool accept_has_lent(const struct acceptors *accept)
{
    for (unsigned i = 0; i < accept->n; i++)
        if (accept->list[i]->lent)
            return true;
    return false;
}

void accept_wake_another(struct worker *worker, int fd)
{
    struct acceptors *accept = &worker->accept;
    uint32_t to;

    if (accept->bell == NULL)
        return;
    to = accept_share_find_least(&accept->share);
    if (to != SHARE_NOBODY)
        ring(worker, fd, to);
}

/* Accepts the clients that another worker has left to us at the listener of this descriptor, or at
 * any of a few. */
static void take_passed(struct worker *worker, int fd)
{
    struct acceptors *accept = &worker->accept;

    for (unsigned i = 0; i < accept->n; i++) {
        struct acceptor *acceptor = accept->list[i];

        if (acceptor->source.fd != fd && (fd != SHARE_ANY || accept->n > ANY_MOST))
            continue;
        if (acceptor->foreign && !accept->stand_ins) {
            acceptor->lent = acceptor->passed = true;
            accept_watch(worker, acceptor); /* reports those that wait already, too */
            continue;
        }
        if (!acceptor->source.listening)
            continue;
        acceptor->passed = true;
        loop_post(&worker->stream.net.loop, &acceptor->source.events[EVENT_READ], QUEUE_ACCEPT);
    }
}

/* Others have more clients than we do: whatever we have stepped back from is taken again. */
static void bell_rung(struct loop *loop, struct source *source)
{
    struct worker *worker = worker_of_loop(loop);
    struct acceptors *accept = &worker->accept;
    uint32_t cursor = 0;
    int fd;

    assert(source == accept->bell);
    source->events[EVENT_READ].ready = false;
    if (!loop->mechanism->edge)
        bells_quiet(worker->heritage->bells, worker->heritage->index);
    timer_del(loop, &accept->back);
    accept->rung = SHARE_NOBODY;
    accept->waits = false;
    accept->invited = true; /* the other may have taken the mutex again, if we are late */
    map_watch_bell(worker);
    come_back(worker);
    while (accept->list != NULL && (fd = accept_share_passed(&accept->share, &cursor)) != -1)
        take_passed(worker, fd);
}

static int watch_bell(struct worker *worker)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = bell_rung } };
    const struct heritage *heritage = worker->heritage;
    struct loop *loop = &worker->stream.net.loop;
    struct source *bell;

    if (heritage->bells == NULL || heritage->index >= heritage->bells->n)
        return 0;
    bell = source_get(&loop->sources);
    if (bell == NULL) {
        log_write(&worker->log, LEVEL_EMERG, 0, "no slot for the worker's bell");
        return -1;
    }
    bell->fd = heritage->bells->fds[heritage->index];
    bell->ops = &ops;
    bell->io = &io_socket;
    bell->queue = QUEUE_ACCEPT;
    worker->accept.bell = bell;
    if (source_arm(loop, bell, EVENT_READ) == 0)
        return 0;
    log_write(&worker->log, LEVEL_EMERG, errno, "the worker's bell cannot be watched");
    return -1;
}

int accept_init_passing(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;
    const struct heritage *heritage = worker->heritage;
    int64_t n = worker->cycle->core.worker_processes;

    accept->back.expired = back_expired;
    accept->to = accept->rung = SHARE_NOBODY;
    if (!accept_is_shared(worker) || n > SLOT_MAX)
        return 0;
    if (accept_share_init(
            &accept->share, heritage->shared, heritage->slot, heritage->place, (unsigned)n) == -1) {
        log_write(
            &worker->log, LEVEL_EMERG, errno, "no memory for the shares of %d workers", (int)n);
        return -1;
    }
    accept->share.most = worker->stream.net.connections_max;
    if (watch_bell(worker) == -1)
        return -1;
    accept->even = accept->bell != NULL && worker->cycle->events.accept_share;
    accept->stand_ins = accept->even && worker->cycle->events.mechanism->exclusive;
    return 0;
}

void accept_end_passing(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;
    struct loop *loop = &worker->stream.net.loop;

    timer_del(loop, &accept->back);
    for (unsigned i = 0; i < accept->n; i++)
        accept->list[i]->aside = accept->list[i]->lent = false;
    accept->aside_n = 0;
    accept->rung = SHARE_NOBODY;
    accept->even = accept->stand_ins = false;
    if (accept->bell != NULL)
        source_detach(loop, accept->bell); /* other workers and successors have the descriptor */
    accept->bell = NULL;
    accept_share_done(&accept->share);
}

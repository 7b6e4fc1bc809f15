/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes clients: leaves the next clients, or turns of the accept mutex, to the worker with the
 * fewest, by ringing the bell, and takes the clients back when the timer `back` expires. The timer
 * bounds the wait of every client. Never accepts. */
#include "worker/accept_pass.h"

#include "base/compiler.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>

/* Time for a woken worker to take the clients of a listener, or the accept mutex. */
#define BACK_MS 2
#define MUTEX_BACK_MS 5
/* Interval between clients of a burst. */
#define BURST_MS 1
/* Time for a worker with room, before idle connections are closed here. */
#define SHORT_BACK_MS 10
/* Interval at which a worker with the fewest clients goes behind, too: the workers of a second
 * master process, whose clients are not compared, would get no client otherwise. */
#define ROUND_MS 100
/* Listeners that are looked at for SHARE_ANY. */
#define ANY_MOST 64
/* Bound of accept_mutex_delay between two looks for waiting clients. */
#define LOOK_MS 1000

static void set_passing(struct acceptors *accept, enum accept_passing passing)
{
    enum { NONE = 1u << PASSING_NONE, ANY = 1u << PASSING_CLIENTS | 1u << PASSING_SHORT };
    static const unsigned legal[] = {
        [PASSING_NONE] = ANY,
        [PASSING_CLIENTS] = 1u << PASSING_CLIENTS | NONE | 1u << PASSING_REFUSED,
        [PASSING_SHORT] = 1u << PASSING_SHORT | NONE | 1u << PASSING_REFUSED,
        [PASSING_REFUSED] = NONE | ANY,
    };

    assert(legal[accept->passing] & 1u << passing);
    accept->passing = passing;
}

static void wake_worker(struct worker *worker, int fd, uint32_t to)
{
    if (to == SHARE_NOBODY)
        return;
    accept_share_publish_pass(&worker->accept.share, fd, to);
    bells_ring(worker->heritage->bells, to);
}

/* Watches the yielded listeners again, behind all siblings. */
static void watch_yielded(struct worker *worker)
{
    if (worker->accept.yielded_n > 0)
        ACCEPTORS_FOREACH (acceptor, &worker->accept)
            if (acceptor->state == ACCEPTOR_YIELDED)
                acceptor_change(worker, acceptor, ACCEPTOR_ACTIVE);
}

/* Leaves a listener, or (NULL) the accept mutex, to worker `to`, or (SHARE_NOBODY) to any. */
static void leave_to(struct worker *worker, struct acceptor *acceptor, uint32_t to)
{
    struct acceptors *accept = &worker->accept;
    int fd = -1;

    assert(timer_is_set(&accept->back));
    if (acceptor != NULL) {
        acceptor_change(worker, acceptor, ACCEPTOR_YIELDED);
        fd = accept->yielded_n == 1 ? acceptor->source.fd : SHARE_ANY;
    }
    wake_worker(worker, fd, to);
}

/* Leaves a listener, or the mutex, for a while: to a worker woken, or (SHARE_NOBODY) to the workers
 * that wait there. */
static void pass_clients(struct worker *worker, struct acceptor *acceptor, uint32_t to)
{
    struct acceptors *accept = &worker->accept;
    uint64_t ms = acceptor != NULL ? BACK_MS : MUTEX_BACK_MS;

    assert(accept->bell != NULL);
    if (to != SHARE_NOBODY) {
        accept->woken = to;
        ms = accept->passing == PASSING_SHORT ? SHORT_BACK_MS : ms;
    }
    if (accept->passing != PASSING_SHORT)
        set_passing(accept, PASSING_CLIENTS);
    timers_arm(&worker->stream.net.loop.timers, &accept->back, ms);
    counters_add(
        worker->stream.net.counters, to != SHARE_NOBODY ? COUNTER_PASSES : COUNTER_YIELDS, 1);
    leave_to(worker, acceptor, to);
}

/* Leaves the next client of a burst to a worker with fewer. The event was reported before this
 * worker went behind the siblings; an isolated client is not worth a wake-up. */
static bool leaves_burst(struct worker *worker, struct acceptor *acceptor)
{
    struct acceptors *accept = &worker->accept;
    uint64_t now = worker->stream.net.loop.clock.mono_ms;
    uint32_t to;

    if (accept->balance != BALANCE_CLIENTS || accept->sharing != SHARING_EXCLUSIVE ||
        acceptor->kind != ACCEPTOR_SHARED || !acceptors_are_open(accept) ||
        now - accept->accepted_ms > BURST_MS ||
        worker->stream.net.client_n <= accept->share.least ||
        accept_share_judge(&accept->share, worker->stream.net.client_n, false, now, &to) !=
            SHARE_PASS)
        return false;
    pass_clients(worker, acceptor, to);
    return true;
}

bool accept_leaves_event(struct worker *worker, struct acceptor *acceptor)
{
    struct acceptors *accept = &worker->accept;

    if (!timer_is_set(&accept->back))
        return leaves_burst(worker, acceptor);
    if (acceptor_needs_mutex(accept, acceptor) ||
        (acceptor->kind != ACCEPTOR_SHARED && accept->balance != BALANCE_CLIENTS))
        return false;
    leave_to(worker, acceptor, accept->woken);
    return true;
}

static void stop_passing(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;

    timer_del(&worker->stream.net.loop, &accept->back);
    accept->woken = SHARE_NOBODY;
    if (accept->passing == PASSING_CLIENTS || accept->passing == PASSING_SHORT)
        set_passing(accept, PASSING_NONE);
}

static void back_expired(struct loop *loop, struct timer *timer)
{
    struct worker *worker = worker_of_loop(loop);
    struct acceptors *accept = &worker->accept;

    assert(timer == &accept->back);
    if (accept->woken != SHARE_NOBODY)
        accept_share_note_answer(&accept->share, accept->woken);
    if (accept->passing == PASSING_SHORT)
        accept_share_note_refusal(&accept->share);
    accept->woken = SHARE_NOBODY;
    set_passing(accept, PASSING_REFUSED);
    watch_yielded(worker);
}

void accept_yield(struct worker *worker, struct acceptor *acceptor, bool left)
{
    struct acceptors *accept = &worker->accept;
    bool goes_behind = left || acceptor->kind == ACCEPTOR_SIBLING;

    accept->accepted_ms = worker->stream.net.loop.clock.mono_ms;
    if (acceptor->kind == ACCEPTOR_SHARED && !goes_behind)
        goes_behind = accept->balance != BALANCE_CLIENTS ||
                      worker->stream.net.client_n > accept->share.least ||
                      accept->accepted_ms - acceptor->rejoined_ms >= ROUND_MS;
    if (goes_behind && acceptor->source.listening && acceptor_is_exclusive(accept, acceptor))
        acceptor_rejoin(worker, acceptor);
}

/* Whether accept_disabled leaves clients to others: not where no worker has fewer connections. */
static bool accepting_is_disabled(const struct worker *worker)
{
    uint64_t totals[COUNTERS], own = worker->stream.net.client_n;

    if (worker->accept.disabled <= 0)
        return false;
    shared_totals(worker->heritage->shared, totals);
    return own * (uint64_t)worker->cycle->core.worker_processes > totals[COUNTER_ACTIVE];
}

static enum share_verdict judge_balance(
    struct worker *worker, const struct acceptor *acceptor, uint32_t *to)
{
    struct acceptors *accept = &worker->accept;

    if (accept->balance == BALANCE_CLIENTS)
        return accept_share_judge(&accept->share, worker->stream.net.client_n,
            acceptor_is_exclusive(accept, acceptor), worker->stream.net.loop.clock.mono_ms, to);
    if (accept->balance == BALANCE_NONE || acceptor->kind != ACCEPTOR_SHARED ||
        !accepting_is_disabled(worker))
        return SHARE_FAIR;
    *to = accept_share_find_least(&accept->share);
    return *to == SHARE_NOBODY ? SHARE_FAIR : SHARE_PASS;
}

bool accept_leaves_next(struct worker *worker, struct acceptor *acceptor)
{
    struct acceptors *accept = &worker->accept;
    enum share_verdict verdict;
    uint32_t to;

    if (accept->passing == PASSING_REFUSED)
        set_passing(accept, PASSING_NONE);
    if (!acceptors_are_open(accept))
        return false;
    verdict = judge_balance(worker, acceptor, &to);
    if (acceptor_needs_mutex(accept, acceptor)) /* left in the next turn, once given back */
        accept->to = verdict == SHARE_FAIR ? SHARE_NOBODY : to;
    else if (verdict == SHARE_PASS)
        pass_clients(worker, acceptor, to);
    else if (verdict == SHARE_ASIDE)
        pass_clients(worker, acceptor, SHARE_NOBODY);
    else if (verdict == SHARE_YIELD)
        counters_add(worker->stream.net.counters, COUNTER_YIELDS, 1);
    return verdict != SHARE_FAIR;
}

bool accept_leaves_short(struct worker *worker, struct acceptor *acceptor)
{
    struct acceptors *accept = &worker->accept;
    bool needs_mutex = acceptor_needs_mutex(accept, acceptor);
    uint32_t to;

    if (accept->bell == NULL ||
        (acceptor->kind != ACCEPTOR_SHARED && accept->balance != BALANCE_CLIENTS))
        return false;
    if (accept->phase == ACCEPT_OPEN) /* published before the load is read */
        acceptors_set_phase(worker, ACCEPT_CROWDED);
    if (timer_is_set(&accept->back))
        return !needs_mutex && accept_leaves_event(worker, acceptor);
    to = accept_share_find_room(&accept->share, worker->stream.net.loop.clock.mono_ms);
    if (to == SHARE_NOBODY)
        return false;
    set_passing(accept, PASSING_SHORT);
    if (needs_mutex)
        accept->to = to;
    else
        pass_clients(worker, acceptor, to);
    return true;
}

void accept_wake_another(struct worker *worker, int fd)
{
    if (worker->accept.bell != NULL)
        wake_worker(worker, fd, accept_share_find_least(&worker->accept.share));
}

/* ---- Turns of the accept mutex ---- */

/* Leaves the free mutex to another worker, judged once in a millisecond at most. */
static bool leave_turn(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;
    uint64_t now = worker->stream.net.loop.clock.mono_ms;
    uint32_t to = accept->to;

    if (accept->passing == PASSING_REFUSED)
        return false;
    if (timer_is_set(&accept->back))
        return true;
    if (accept->balance != BALANCE_CLIENTS || !accept_mutex_is_free(&accept->mutex))
        return false;
    accept->to = SHARE_NOBODY;
    if (to == SHARE_NOBODY) {
        if (accept->judged_ms == now)
            return false;
        accept->judged_ms = now;
        if (accept_share_judge(&accept->share, worker->stream.net.client_n, false, now, &to) !=
            SHARE_PASS)
            return false;
    }
    pass_clients(worker, NULL, to);
    return true;
}

/* Whether a client waits at a listener that the mutex's holder watches. */
static bool clients_wait(const struct acceptors *accept)
{
    ACCEPTORS_FOREACH (acceptor, accept)
        if (acceptor->kind == ACCEPTOR_SHARED && acceptor->state != ACCEPTOR_BROKEN &&
            acceptor->source.io->waits(&acceptor->source))
            return true;
    return false;
}

/* Tries the mutex, or `leaves` it unless in vain; the time to the next try, at most `delay`. */
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
    bool leaves = accepting_is_disabled(worker), is_open = acceptors_are_open(accept);

    assert(accept->sharing == SHARING_MUTEX);
    assert(!acceptors_hold_mutex(accept)); /* the last turn has given it back */
    if (!is_open && !acceptors_are_suspended(accept))
        return timeout;
    if (leaves && !accept->was_disabled)
        accept_wake_another(worker, -1);
    accept->was_disabled = leaves;
    if (leaves) { /* a turn of accept_disabled: all last accept_mutex_delay */
        delay = accept->disabled < delay ? delay / accept->disabled : 1;
        accept->disabled--;
    } else if (is_open && leave_turn(worker)) {
        leaves = true;
        delay = delay < MUTEX_BACK_MS ? delay : MUTEX_BACK_MS;
    }
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
    if (unlikely(accept->passing == PASSING_SHORT) && accept->to != SHARE_NOBODY &&
        !timer_is_set(&accept->back)) {
        pass_clients(worker, NULL, accept->to);
        accept->to = SHARE_NOBODY;
    }
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

/* ---- The bell ---- */

/* Accepts passed clients at the listener of this descriptor, or (SHARE_ANY) at a few. */
static void take_passed(struct worker *worker, int fd)
{
    struct acceptors *accept = &worker->accept;

    ACCEPTORS_FOREACH (acceptor, accept) {
        if (acceptor->source.fd != fd && (fd != SHARE_ANY || accept->n > ANY_MOST))
            continue;
        if (acceptor->kind == ACCEPTOR_SIBLING && accept->sharing != SHARING_EXCLUSIVE) {
            acceptor_raise_batch(acceptor, ACCEPTOR_PASSED);
            if (acceptor->state == ACCEPTOR_DORMANT) /* clients that wait are reported */
                acceptor_change(worker, acceptor, ACCEPTOR_ACTIVE);
        } else if (acceptor->source.listening) {
            acceptor_raise_batch(acceptor, ACCEPTOR_PASSED);
            loop_post(&worker->stream.net.loop, &acceptor->source.events[EVENT_READ], QUEUE_ACCEPT);
        }
    }
}

/* Runs when another worker has more clients: takes yielded listeners back. */
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
    stop_passing(worker);
    accept->invited = true; /* if late, the woken worker may have taken the mutex again */
    map_watch_look(worker);
    watch_yielded(worker);
    while ((fd = accept_share_passed(&accept->share, &cursor)) != -1)
        take_passed(worker, fd);
}

static int watch_bell(struct worker *worker)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = bell_rung } };
    const struct heritage *heritage = worker->heritage;
    struct source *bell;

    if (heritage->bells == NULL || heritage->index >= heritage->bells->n)
        return 0;
    worker->accept.bell = bell = worker_source(worker, heritage->bells->fds[heritage->index], &ops);
    if (bell == NULL)
        return worker_fail(worker, 0, "no slot for the worker's bell");
    bell->queue = QUEUE_ACCEPT;
    if (source_arm(&worker->stream.net.loop, bell, EVENT_READ) == 0)
        return 0;
    return worker_fail(worker, errno, "the worker's bell cannot be watched");
}

int accept_init_passing(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;
    const struct events_settings *events = &worker->cycle->events;
    const struct heritage *heritage = worker->heritage;
    int64_t n = worker->cycle->core.worker_processes;

    assert(accept->balance == BALANCE_NONE && accept->passing == PASSING_NONE);
    accept->back.expired = back_expired;
    accept->to = accept->woken = SHARE_NOBODY;
    if (accept->sharing == SHARING_NONE || n > SLOT_MAX)
        return 0;
    if (accept_share_init(
            &accept->share, heritage->shared, heritage->slot, heritage->place, (unsigned)n) == -1)
        return worker_fail(worker, errno, "no memory for the shares of %d workers", (int)n);
    accept->share.most = worker->stream.net.connections_max;
    if (watch_bell(worker) == -1)
        return -1;
    if (accept->bell != NULL && events->accept_share)
        accept->balance = BALANCE_CLIENTS;
    else if (accept->bell != NULL && events->accept_mutex && accept->sharing == SHARING_EXCLUSIVE)
        accept->balance = BALANCE_SLOTS;
    return 0;
}

void accept_end_passing(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;

    stop_passing(worker);
    accept->balance = BALANCE_NONE;
    if (accept->bell != NULL) /* other workers and successors have the descriptor */
        source_detach(&worker->stream.net.loop, accept->bell);
    accept->bell = NULL;
    accept_share_done(&accept->share);
}

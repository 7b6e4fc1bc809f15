/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepts clients, and suspends it for a shortage.
 *
 * A client wakes one worker, however many there are. Where the kernel can wake one of all who
 * watch a listener, all do, and who has more clients than another goes behind; else the holder
 * of the mutex watches alone, until the turn in which it finds that another has taken it.
 *
 * Shared listeners are armed only while the phase is ACCEPT_OPEN. The other workers get a message
 * when clients may be stranded at a listener that we stop watching. */
#include "base/compiler.h"
#include "worker/accept_private.h"
#include "worker/commands.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* The most clients accepted in one go, so that a flood leaves time for the other events: the
 * others are reported again. A rescan ends with the backlog, or past the longest there is. */
#define BATCH_MAX 64
#define RESCAN_MAX 65536

enum outcome { ACCEPTED, FAILED, EMPTY, SHORT, BROKEN };

static struct net *net_of(struct worker *worker)
{
    return &worker->stream.net;
}

static void connection_released(struct net *net);

static void set_accept_phase(struct worker *worker, enum accept_phase phase)
{
    static const unsigned legal[] = {
        [ACCEPT_CLOSED] = 1u << ACCEPT_OPEN | 1u << ACCEPT_RELEASED,
        [ACCEPT_OPEN] = 1u << ACCEPT_PAUSED | 1u << ACCEPT_FULL | 1u << ACCEPT_RELEASED,
        /* while listeners are released, a suspended worker accepts, and may be suspended again */
        [ACCEPT_PAUSED] =
            1u << ACCEPT_OPEN | 1u << ACCEPT_PAUSED | 1u << ACCEPT_FULL | 1u << ACCEPT_RELEASED,
        [ACCEPT_FULL] =
            1u << ACCEPT_OPEN | 1u << ACCEPT_PAUSED | 1u << ACCEPT_FULL | 1u << ACCEPT_RELEASED,
        [ACCEPT_RELEASED] = 0,
    };

    struct acceptors *accept = &worker->accept;

    assert(legal[accept->phase] & 1u << phase);
    accept->phase = phase;
    accept->crowded = false;
    net_of(worker)->awaited = phase == ACCEPT_FULL ? connection_released : NULL;
    accept_share_publish(&accept->share, phase == ACCEPT_OPEN ? SLOT_TAKES : SLOT_TAKES_NONE);
}

/* With the mutex, shared listeners are watched only by its holder. Another worker's queue is, where
 * the kernel would wake all who do, only while that worker has lent it. */
static bool is_watched(const struct acceptors *accept, const struct acceptor *acceptor)
{
    if (accept->phase != ACCEPT_OPEN || acceptor->broken || acceptor->aside)
        return false;
    if (acceptor->foreign && !accept->stand_ins && !acceptor->lent)
        return false;
    return acceptor->own || !accept->mutex || accept->watches_shared;
}

/* Watches the listener, or does not; false for want of kernel memory. */
static bool watch(struct worker *worker, struct acceptor *acceptor)
{
    const struct acceptors *accept = &worker->accept;
    struct loop *loop = &net_of(worker)->loop;

    if (!is_watched(accept, acceptor)) {
        source_disarm_listener(loop, &acceptor->source);
        return true;
    }
    return source_arm_listener(
               loop, &acceptor->source, acceptor->own ? accept->stand_ins : accept->exclusive) == 0;
}

/* A listener could not be watched; tried again later, because nobody else may serve it. */
static void watch_later(struct worker *worker)
{
    timer_set(&net_of(worker)->loop, &worker->accept.resume,
        (uint64_t)worker->cycle->events.accept_mutex_delay);
}

void accept_watch(struct worker *worker, struct acceptor *acceptor)
{
    if (!watch(worker, acceptor))
        watch_later(worker);
}

void accept_update_watching(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;
    bool failed = false;

    assert(accept->list != NULL);
    accept->watches_shared = accept->holds_mutex && !accept_is_suspended(accept);
    for (unsigned i = 0; i < accept->n; i++)
        failed = !watch(worker, accept->list[i]) || failed;
    if (failed)
        watch_later(worker);
}

/* Stops accepting for a while. Clients wait in the backlog, for us or another worker. */
static void suspend_accepting(
    struct worker *worker, const struct acceptor *acceptor, enum accept_phase phase, int error)
{
    struct acceptors *accept = &worker->accept;
    struct loop *loop = &net_of(worker)->loop;

    assert(phase == ACCEPT_PAUSED || phase == ACCEPT_FULL);
    accept_note_shortage(worker, phase, error);
    set_accept_phase(worker, phase);
    accept_update_watching(worker);
    timer_set(loop, &accept->resume, (uint64_t)worker->cycle->events.accept_mutex_delay);
    /* the kernel may have woken us alone, or no other may watch the queue */
    if (acceptor->own ? accept->even : accept->exclusive || accept_has_lent(accept))
        channel_end_send(&worker->to_master, MESSAGE_RESCAN);
    accept->wakes = accept->holds_mutex;
    accept->short_fd = acceptor->source.fd;
    if (!accept->wakes)
        accept_wake_another(worker, accept->short_fd);
}

static void resume_accepting(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;

    assert(accept_is_suspended(accept));
    timer_del(&net_of(worker)->loop, &accept->resume);
    set_accept_phase(worker, ACCEPT_OPEN);
    accept_borrow(worker);
    accept_update_watching(worker);
}

static void resume_expired(struct loop *loop, struct timer *timer)
{
    struct worker *worker = worker_of_loop(loop);

    assert(timer == &worker->accept.resume);
    if (accept_is_suspended(&worker->accept))
        resume_accepting(worker);
    else
        accept_update_watching(worker); /* a listener could not be watched */
}

/* Runs when a slot has become free that was wanted: while accepting is ACCEPT_FULL, or crowding is
 * published. */
static void connection_released(struct net *net)
{
    struct worker *worker = worker_of_loop(&net->loop);
    struct acceptors *accept = &worker->accept;

    if (net_lacks_slots(net, accept->short_slots))
        return;
    if (accept->phase == ACCEPT_FULL)
        resume_accepting(worker);
    if (accept->crowded) {
        accept->crowded = false;
        accept_share_publish(&accept->share, SLOT_TAKES);
        net->awaited = NULL;
    }
}

void accept_publish_crowding(struct worker *worker)
{
    worker->accept.crowded = true;
    net_of(worker)->awaited = connection_released;
    accept_share_publish(&worker->accept.share, SLOT_IS_CROWDED);
}

/* A client waits for whom there is no slot or descriptor: another worker takes it, connections give
 * way, or we suspend. */
static COLD enum outcome run_short(
    struct worker *worker, struct acceptor *acceptor, enum accept_phase phase, int error)
{
    bool listening = acceptor->source.listening;

    if (!acceptor->source.io->waits(&acceptor->source))
        return EMPTY; /* another worker was faster, or a rescan has looked in vain */
    worker->accept.short_slots = acceptor->slots;
    if ((phase == ACCEPT_FULL || error == EMFILE || error == ENFILE) &&
        accept_make_room(worker, acceptor))
        return listening ? SHORT : FAILED;
    suspend_accepting(worker, acceptor, phase, error);
    return SHORT;
}

static enum outcome accept_failed(struct worker *worker, struct acceptor *acceptor, int error)
{
    switch (error) {
    case EINVAL: /* the socket does not listen: somebody has shut it down */
        if (worker->phase < WORKER_DRAINING)
            accept_note_broken(worker, acceptor);
        return BROKEN;
    /* errors of the network, which Linux hands to accept: of this client alone */
    case ECONNABORTED:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ENONET:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case EPERM:
    case EPROTO:
    case ETIMEDOUT:
        log_write(&worker->log, LEVEL_INFO, error, "accept4() failed");
        return FAILED;
    default: /* a shortage, or a broken listener: to try again at once would be in vain */
        return run_short(worker, acceptor, ACCEPT_PAUSED, error);
    }
}

static enum outcome accept_one(struct worker *worker, struct acceptor *acceptor, fb_conn **client)
{
    struct net *net = net_of(worker);
    struct address peer;
    struct io_result result;
    struct fb_conn *conn;
    int fd;

    assert(worker->accept.phase != ACCEPT_CLOSED && worker->accept.phase != ACCEPT_RELEASED);
    if (net_lacks_slots(net, acceptor->slots))
        return run_short(worker, acceptor, ACCEPT_FULL, 0);
    if (unlikely(net->spare_fd == -1) && acceptor->slots > 1 && !net_keep_spare(net))
        return run_short(worker, acceptor, ACCEPT_PAUSED, errno);
    peer.length = sizeof(peer.un);
    peer.any.sa_family = AF_UNIX; /* about an unnamed peer nothing else is known */
    result = acceptor->source.io->accept(&acceptor->source, &fd, &peer.any, &peer.length);
    if (result.status == IO_AGAIN_READ) {
        debug_source(&net->loop, &acceptor->source, "no client waits");
        return EMPTY;
    }
    if (result.status != IO_DONE)
        return accept_failed(worker, acceptor, result.error);

    counters_add(net->counters, COUNTER_ACCEPTS, 1);
    conn = session_start(&worker->stream, acceptor->listener->owner, fd, &peer.any);
    if (conn == NULL)
        return SHORT;
    debug_source(&net->loop, &conn->source, "accepted at %s", acceptor->listener->text);
    /* data has come before the client was given to us, so that no event needs to be waited for */
    conn->source.events[EVENT_READ].ready = acceptor->listener->options.deferred;
    worker->accept.disabled =
        (int64_t)net->connections_max / 8 - ((int64_t)net->connections_max - net->connection_n);
    *client = conn; /* for the caller to open */
    return ACCEPTED;
}

/* Whether another accept follows this one. A rescan goes on to the empty backlog even when the
 * slots are used up: the accept that then fails suspends accepting, and has the other workers
 * rescan where the kernel wakes one of them alone. */
static bool continues(
    const struct net *net, const struct acceptor *acceptor, enum outcome outcome, bool rescan)
{
    return (outcome == ACCEPTED || outcome == FAILED) &&
           (rescan || !net_lacks_slots(net, acceptor->slots));
}

static void accept_clients(struct worker *worker, struct acceptor *acceptor)
{
    const struct acceptors *accept = &worker->accept;
    bool rescan = acceptor->rescan;
    bool wanted = rescan || acceptor->passed; /* whatever others have */
    bool many = wanted || worker->cycle->events.multi_accept;
    int most = rescan ? RESCAN_MAX : BATCH_MAX;
    bool at_once = !many && !accept->holds_mutex;
    struct fb_conn *client = NULL;
    enum outcome outcome;
    bool left = false, any;
    int n = 0;

    acceptor->rescan = acceptor->passed = false;
    if (!wanted && accept_leaves_event(worker, acceptor))
        return;
    do {
        outcome =
            accept_steps_back(worker, acceptor) ? EMPTY : accept_one(worker, acceptor, &client);
        if (outcome == ACCEPTED && !at_once)
            conn_open_soon(client);
        left = outcome == ACCEPTED && !rescan && accept_leaves_next(worker, acceptor);
    } while (many && !left && continues(net_of(worker), acceptor, outcome, rescan) && ++n < most);
    if (acceptor->source.events[EVENT_WRITE].queue != QUEUE_NONE) /* room is being made */
        acceptor->rescan = rescan;
    any = n > 0 || outcome == ACCEPTED;
    if (any || outcome != EMPTY)
        acceptor->empty_n = 0;
    else if (!rescan)
        accept_note_empty(worker, acceptor);
    acceptor->source.events[EVENT_READ].ready = false; /* what is left is reported again */
    if (outcome == ACCEPTED && at_once)
        conn_open(client);
    if (any) /* last: a session may have come and gone */
        accept_yield(worker, acceptor, left);
}

static void acceptor_readable(struct loop *loop, struct source *source)
{
    assert(source->listening); /* disarming a listener has also taken its event out of the queue */
    accept_clients(worker_of_loop(loop), container_of(source, struct acceptor, source));
}

static const struct source_ops acceptor_ops = {
    .run = { [EVENT_READ] = acceptor_readable, [EVENT_WRITE] = accept_room_wanted },
};

static int add_acceptor(struct worker *worker, struct listener *listener, int fd, bool ours)
{
    struct source *source = source_get(&net_of(worker)->loop.sources);
    struct acceptor *acceptor;

    static_assert(sizeof(*acceptor) <= sizeof(struct fb_conn), "it lies in a connection's slot");
    if (source == NULL) {
        log_write(&worker->log, LEVEL_EMERG, 0, "no slot for the listener %s", listener->text);
        return -1;
    }
    assert(fd != -1);
    acceptor = container_of(source, struct acceptor, source);
    source->fd = fd;
    source->ops = &acceptor_ops;
    source->io = net_of(worker)->loop.mechanism->io;
    source->io_state = net_of(worker)->loop.mechanism_state;
    source->queue = QUEUE_ACCEPT;
    acceptor->listener = listener;
    acceptor->slots = port_slots(listener->owner);
    acceptor->own = listener->options.reuseport;
    acceptor->foreign = !ours;
    worker->accept.list[worker->accept.n++] = acceptor;
    return 0;
}

/* A reuseport socket is a queue that one worker serves. Sockets beyond the number of workers, which
 * an earlier configuration with more workers has left, are shared out among the workers. */
static bool is_ours(const struct worker *worker, const struct listener *listener, unsigned i)
{
    return !listener->options.reuseport || worker->role != ROLE_WORKER ||
           i % (unsigned)worker->cycle->core.worker_processes == worker->heritage->index;
}

static int add_acceptors(struct worker *worker, struct listener *listener, bool ours)
{
    for (unsigned i = 0; i < listener->fd_n; i++)
        if (is_ours(worker, listener, i) == ours &&
            add_acceptor(worker, listener, listener->fds[i], ours) == -1)
            return -1;
    return 0;
}

int accept_init(struct worker *worker)
{
    const struct events_settings *events = &worker->cycle->events;
    struct acceptors *accept = &worker->accept;
    bool several = accept_is_shared(worker);
    struct listener *listener;
    unsigned n = 0;

    assert(worker->phase == WORKER_STARTING);
    assert(accept->list == NULL && accept->phase == ACCEPT_CLOSED);
    accept->exclusive = several && events->mechanism->exclusive;
    accept->mutex = several && events->accept_mutex && !accept->exclusive;
    accept->makes_way = accept->exclusive && events->accept_mutex;
    accept->resume.expired = resume_expired;
    accept->mend.expired = accept_mend_expired;
    if (accept_init_passing(worker) == -1)
        return -1;
    if (accept->mutex)
        accept_mutex_init(&accept->turns, worker->heritage->shared, worker->heritage->slot,
            (uint64_t)events->accept_mutex_delay, accept->even);

    STAILQ_FOREACH (listener, &worker->cycle->stream.listeners.list, link)
        n += listener->fd_n;
    accept->list = calloc(n + 1, sizeof(accept->list[0]));
    if (accept->list == NULL) {
        log_write(&worker->log, LEVEL_EMERG, errno, "no memory for the listeners");
        return -1;
    }
    STAILQ_FOREACH (listener, &worker->cycle->stream.listeners.list, link)
        if (add_acceptors(worker, listener, true) == -1 ||
            (accept->even && add_acceptors(worker, listener, false) == -1))
            return -1;
    return 0;
}

void accept_open(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;

    assert(worker->phase == WORKER_READY || worker->phase == WORKER_SERVING);
    if (accept->phase == ACCEPT_CLOSED)
        set_accept_phase(worker, ACCEPT_OPEN);
    if (worker->phase == WORKER_READY)
        worker_set_phase(worker, WORKER_SERVING);
    accept_update_watching(worker);
}

void accept_rescan(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;
    struct loop *loop = &net_of(worker)->loop;

    accept_borrow(worker);
    for (unsigned i = 0; i < accept->n; i++) {
        struct source *source = &accept->list[i]->source;

        if (!source->listening)
            continue;
        accept->list[i]->rescan = true;
        loop_post(loop, &source->events[EVENT_READ], QUEUE_ACCEPT);
    }
}

/* Accepts whoever waits at the listener, which is watched no more, and closes it. No client is left
 * behind: ours may be the socket's last open descriptor, at whose close the kernel resets all that
 * it still holds. Only a client that connects between our last accept and that close is lost. */
static void release_listener(struct worker *worker, struct acceptor *acceptor)
{
    struct source *source = &acceptor->source;
    int fd = source->fd;

    assert(source->in_use && !source->listening && fd != -1);
    acceptor->rescan = true;
    if (worker->accept.phase != ACCEPT_CLOSED && worker->phase != WORKER_ENDING)
        accept_clients(worker, acceptor); /* suspended or not: a shortage may be over */
    listener_close_socket(acceptor->listener, fd);
    source->fd = -1;
    source_close(&net_of(worker)->loop, source, false);
}

void accept_release(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;
    struct loop *loop = &net_of(worker)->loop;
    struct listener *listener;
    bool all = accept->even; /* the list has them already */

    assert(accept->phase != ACCEPT_RELEASED);
    if (accept->phase != ACCEPT_CLOSED)
        accept_wake_another(worker, -1);
    accept_end_passing(worker);
    STAILQ_FOREACH (listener, &worker->cycle->stream.listeners.list, link) {
        if (accept->phase != ACCEPT_CLOSED && !all) /* other workers' queues: they may have gone */
            add_acceptors(worker, listener, false);
        if (worker->role == ROLE_SINGLE) /* the master does it for its workers */
            listener_unlink(listener, &worker->log);
    }
    for (unsigned i = 0; i < accept->n; i++)
        source_disarm_listener(loop, &accept->list[i]->source);
    source_release_disarmed(loop);
    for (unsigned i = 0; i < accept->n; i++)
        release_listener(worker, accept->list[i]);
    STAILQ_FOREACH (listener, &worker->cycle->stream.listeners.list, link)
        listener_close(listener);
    timer_del(loop, &accept->resume);
    timer_del(loop, &accept->mend);
    free(accept->list);
    accept->list = NULL;
    accept->n = 0;
    set_accept_phase(worker, ACCEPT_RELEASED);
}

static void check_acceptor(const struct acceptors *accept, const struct acceptor *acceptor)
{
    const struct source *source = &acceptor->source;
    bool wanted = is_watched(accept, acceptor);

    assert(source->in_use && source->ops == &acceptor_ops);
    assert(source->fd != -1 && source->queue == QUEUE_ACCEPT);
    assert(!source->listening || wanted);
    assert(source->listening || !wanted || timer_is_set(&accept->resume));
    assert(!acceptor->broken || timer_is_set(&accept->mend));
}

void acceptors_check(const struct acceptors *accept)
{
    assert((accept->phase == ACCEPT_RELEASED) == (accept->list == NULL));
    assert(accept->list != NULL || accept->n == 0);
    assert(!accept->mutex || !accept->exclusive);
    assert(accept->rung == SHARE_NOBODY || timer_is_set(&accept->back));
    assert(accept->aside_n == 0 || timer_is_set(&accept->back));
    assert(!accept->even || accept->bell != NULL);
    assert(!accept->holds_mutex || accept->mutex);
    assert(!accept->watches_shared || accept->mutex);
    assert(!accept_is_suspended(accept) || timer_is_set(&accept->resume));
    assert(!accept_is_suspended(accept) || accept->shortage_at != 0);
    for (unsigned i = 0; i < accept->n; i++)
        check_acceptor(accept, accept->list[i]);
}

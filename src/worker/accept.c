/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepts clients, makes room for clients without a slot or descriptor, suspends accepting for a
 * shortage, and releases the listeners without leaving a client in a backlog. */
#include "worker/accept.h"

#include "base/compiler.h"
#include "base/trace.h"
#include "net/conn_input.h"
#include "net/listener_open.h"
#include "net/listener_socket.h"
#include "session/idle.h"
#include "session/session.h"
#include "worker/accept_pass.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Clients accepted in an event, so that a flood leaves time; in a rescan: beyond any backlog. */
#define BATCH_MAX 64
#define RESCAN_MAX 65536
/* After this many events in a row without a client a unix socket is looked at: after a shutdown()
 * accept() only reports that no client waits. */
#define EMPTY_MOST 4
/* Interval of log lines about shortages. */
#define SHORTAGE_MS 60000

enum outcome { ACCEPTED, FAILED, EMPTY, SHORT, BROKEN };

/* The accepts of one event. */
struct batch {
    enum acceptor_batch kind;
    int most;         /* accepts */
    int n;            /* accepts that others have followed */
    bool opens_later; /* sessions begin in the normal queue */
    bool left;        /* the next clients are left to siblings */
    enum outcome outcome;
    struct fb_conn *client; /* of an accept */
};

/* ---- Shortages ---- */

/* Whether clients may be stranded: no second worker may have been woken, or none may watch. */
static bool may_strand_clients(const struct acceptors *accept, const struct acceptor *acceptor)
{
    if (acceptor->kind != ACCEPTOR_SHARED)
        return accept->balance == BALANCE_CLIENTS;
    if (accept->sharing == SHARING_EXCLUSIVE)
        return true;
    ACCEPTORS_FOREACH (other, accept)
        if (other->kind == ACCEPTOR_SIBLING && other->state != ACCEPTOR_DORMANT)
            return true;
    return false;
}

/* Suspends accepting. Clients wait in the backlog, for any worker. */
static void suspend_accepting(
    struct worker *worker, const struct acceptor *acceptor, enum accept_phase phase, int error)
{
    struct acceptors *accept = &worker->accept;
    struct loop *loop = &worker->stream.net.loop;
    uint64_t now = loop->clock.mono_ms;
    bool is_logged;

    assert(phase == ACCEPT_PAUSED || phase == ACCEPT_FULL);
    is_logged = accept->shortage_at == 0 || now - accept->shortage_at > SHORTAGE_MS;
    if (is_logged && phase == ACCEPT_FULL)
        log_write(&worker->log, LEVEL_ALERT, 0,
            "%" PRIu32 " worker_connections are not enough, accepting is suspended",
            worker->stream.net.connections_max);
    else if (is_logged)
        log_write(&worker->log, LEVEL_CRIT, error, "accept4() failed, accepting is suspended");
    accept->shortage_at = now;
    acceptors_set_phase(worker, phase);
    acceptors_update(worker);
    timer_set(loop, &accept->resume, (uint64_t)worker->cycle->events.accept_mutex_delay);
    if (may_strand_clients(accept, acceptor))
        channel_end_send(&worker->to_master, MESSAGE_RESCAN);
    accept->short_fd = acceptor->source.fd;
    if (!acceptors_hold_mutex(accept)) /* later when the mutex is given back */
        accept_wake_another(worker, accept->short_fd);
}

static void reclaim_idle(struct worker *worker)
{
    struct net *net = &worker->stream.net;
    char text[64] = "descriptors are not enough";

    if (net_lacks_slots(net, worker->accept.short_slots))
        snprintf(text, sizeof(text), "%" PRIu32 " worker_connections are not enough",
            net->connections_max);
    idle_reclaim(&worker->stream, NULL, text);
    net_flush(net);
}

/* Leaves a client that waits to a worker with room, or has idle connections closed; false: there
 * are none. Protocols are called for their ends, so not while clients are accepted, under the
 * mutex, but from the normal queue, by the WRITE event of the listener. */
static bool make_client_room(struct worker *worker, struct acceptor *acceptor)
{
    struct source *source = &acceptor->source;

    if (!idle_can_reclaim(&worker->stream))
        return false;
    if (accept_leaves_short(worker, acceptor))
        return true;
    if (source->listening)
        loop_post(&worker->stream.net.loop, &source->events[EVENT_WRITE], QUEUE_NORMAL);
    else /* the listener is released, outside of the turn */
        reclaim_idle(worker);
    return true;
}

/* Passes a client without a slot or descriptor, closes idle connections, or suspends accepting. */
static COLD enum outcome run_short(
    struct worker *worker, struct acceptor *acceptor, enum accept_phase phase, int error)
{
    bool listening = acceptor->source.listening;

    if (!acceptor->source.io->waits(&acceptor->source))
        return EMPTY; /* another worker was faster, or a rescan has looked in vain */
    worker->accept.short_slots = acceptor->slots;
    if ((phase == ACCEPT_FULL || error == EMFILE || error == ENFILE) &&
        make_client_room(worker, acceptor))
        return listening ? SHORT : FAILED;
    suspend_accepting(worker, acceptor, phase, error);
    return SHORT;
}

/* ---- Accepting ---- */

static enum outcome accept_failed(struct worker *worker, struct acceptor *acceptor, int error)
{
    /* network errors, handed to accept by Linux: for one client alone */
    static const int errors_of_client[] = { ECONNABORTED, EHOSTDOWN, EHOSTUNREACH, ENETDOWN,
        ENETUNREACH, ENONET, ENOPROTOOPT, EOPNOTSUPP, EPERM, EPROTO, ETIMEDOUT };

    if (error == EINVAL) { /* the socket does not listen: some process has shut it down */
        if (worker->phase < WORKER_DRAINING)
            acceptor_break(worker, acceptor);
        return BROKEN;
    }
    for (size_t i = 0; i < countof(errors_of_client); i++)
        if (error == errors_of_client[i]) {
            log_write(&worker->log, LEVEL_INFO, error, "accept4() failed");
            return FAILED;
        }
    /* a shortage, or a broken listener: to try again at once would be in vain */
    return run_short(worker, acceptor, ACCEPT_PAUSED, error);
}

static enum outcome accept_one(
    struct worker *worker, struct acceptor *acceptor, struct fb_conn **client)
{
    struct net *net = &worker->stream.net;
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
    conn = session_accept(&worker->stream, acceptor->listener->owner, fd, &peer.any);
    if (conn == NULL)
        return SHORT;
    debug_source(&net->loop, &conn->source, "accepted at %s", acceptor->listener->text);
    trace_accept(conn->number, fd, acceptor->listener->text);
    /* data has come before the client was given to us, so that no event needs to be waited for */
    conn->source.events[EVENT_READ].ready = acceptor->listener->options.deferred;
    worker->accept.disabled =
        (int64_t)net->connections_max / 8 - ((int64_t)net->connections_max - net->connection_n);
    *client = conn; /* for the caller to open */
    return ACCEPTED;
}

/* Notes an event without a client: a sibling was faster, or the socket was shut down. */
static void note_empty_event(struct worker *worker, struct acceptor *acceptor)
{
    if (acceptor->kind == ACCEPTOR_SIBLING && worker->accept.sharing != SHARING_EXCLUSIVE)
        acceptor_change(worker, acceptor, ACCEPTOR_DORMANT); /* the sibling accepts again */
    else if (++acceptor->empty_n % EMPTY_MOST == 0 &&
             acceptor->listener->address.any.sa_family == AF_UNIX &&
             listener_is_broken(acceptor->listener, acceptor->source.fd))
        acceptor_break(worker, acceptor);
}

static void end_batch(struct worker *worker, struct acceptor *acceptor, const struct batch *batch)
{
    bool any = batch->n > 0 || batch->outcome == ACCEPTED;

    if (batch->kind == ACCEPTOR_RESCAN &&
        acceptor->source.events[EVENT_WRITE].queue != QUEUE_NONE) /* room is being made */
        acceptor_raise_batch(acceptor, ACCEPTOR_RESCAN);
    if (any || batch->outcome != EMPTY)
        acceptor->empty_n = 0;
    else if (batch->kind != ACCEPTOR_RESCAN)
        note_empty_event(worker, acceptor);
    acceptor->source.events[EVENT_READ].ready = false; /* the rest is reported again */
    if (batch->outcome == ACCEPTED && !batch->opens_later)
        conn_open(batch->client);
    if (any && worker->accept.sharing != SHARING_NONE) /* last: a session may have ended */
        accept_yield(worker, acceptor, batch->left);
}

/* Accepts the clients of an event. A rescan goes on to the empty backlog even without slots: the
 * failing accept then suspends accepting, and makes the remaining workers rescan. */
static void accept_from_listener(struct worker *worker, struct acceptor *acceptor)
{
    static const int most[] = {
        [ACCEPTOR_FAIR] = 1, [ACCEPTOR_PASSED] = BATCH_MAX, [ACCEPTOR_RESCAN] = RESCAN_MAX
    };
    const struct acceptors *accept = &worker->accept;
    bool holds = accept->sharing == SHARING_MUTEX && acceptors_hold_mutex(accept);
    bool multi = acceptor->batch == ACCEPTOR_FAIR && worker->cycle->events.multi_accept;
    struct batch batch = {
        .kind = acceptor->batch,
        .most = multi ? BATCH_MAX : most[acceptor->batch],
        .opens_later = multi || acceptor->batch != ACCEPTOR_FAIR || holds,
    };

    acceptor->batch = ACCEPTOR_FAIR;
    if (batch.kind == ACCEPTOR_FAIR && accept->bell != NULL &&
        accept_leaves_event(worker, acceptor))
        return;
    for (;; batch.n++) {
        if (holds && accept_steps_back(worker, acceptor))
            batch.outcome = EMPTY;
        else
            batch.outcome = accept_one(worker, acceptor, &batch.client);
        if (batch.outcome == ACCEPTED && batch.opens_later)
            conn_open_soon(batch.client);
        batch.left = batch.outcome == ACCEPTED && batch.kind != ACCEPTOR_RESCAN &&
                     accept->bell != NULL && accept_leaves_next(worker, acceptor);
        if (batch.n + 1 >= batch.most || batch.left || batch.outcome > FAILED ||
            (batch.kind != ACCEPTOR_RESCAN &&
                net_lacks_slots(&worker->stream.net, acceptor->slots)))
            break;
    }
    end_batch(worker, acceptor, &batch);
}

static void acceptor_readable(struct loop *loop, struct source *source)
{
    assert(source->listening); /* disarming a listener has unposted its event */
    accept_from_listener(worker_of_loop(loop), container_of(source, struct acceptor, source));
}

static void acceptor_room_wanted(struct loop *loop, struct source *source)
{
    const struct acceptor *acceptor = container_of(source, struct acceptor, source);

    reclaim_idle(worker_of_loop(loop));
    if (acceptor->batch == ACCEPTOR_RESCAN && source->listening) /* the rest may not be reported */
        loop_post(loop, &source->events[EVENT_READ], QUEUE_ACCEPT);
}

/* ---- Listeners ---- */

static int add_acceptor(
    struct worker *worker, struct listener *listener, int fd, enum acceptor_kind kind)
{
    static const struct source_ops ops = {
        .run = { [EVENT_READ] = acceptor_readable, [EVENT_WRITE] = acceptor_room_wanted },
    };
    struct acceptors *accept = &worker->accept;
    struct loop *loop = &worker->stream.net.loop;
    struct source *source = source_get(&loop->sources);
    struct acceptor *acceptor;

    static_assert(
        sizeof(*acceptor) <= sizeof(struct fb_conn), "an acceptor lies in a connection's slot");
    if (source == NULL)
        return worker_fail(worker, 0, "no slot for the listener %s", listener->text);
    assert(fd != -1);
    acceptor = container_of(source, struct acceptor, source);
    source->fd = fd;
    source->ops = &ops;
    source->io = loop->mechanism->io;
    source->io_state = loop->mechanism_state;
    source->queue = QUEUE_ACCEPT;
    acceptor->listener = listener;
    acceptor->slots = port_slots(listener->owner);
    acceptor->kind = kind;
    acceptor->state = kind == ACCEPTOR_SIBLING && !acceptor_is_exclusive(accept, acceptor)
                          ? ACCEPTOR_DORMANT
                          : ACCEPTOR_ACTIVE;
    STAILQ_INSERT_TAIL(&accept->list, acceptor, link);
    accept->n++;
    return 0;
}

/* Adds the sockets of this worker, or of siblings. Sockets of reuseport beyond the number of
 * workers, left by an earlier configuration, are shared out among the workers. */
static int add_acceptors(struct worker *worker, struct listener *listener, bool siblings)
{
    unsigned worker_n = (unsigned)worker->cycle->core.worker_processes;

    for (unsigned i = 0; i < listener->fd_n; i++) {
        enum acceptor_kind kind = ACCEPTOR_SHARED;

        if (listener->options.reuseport)
            kind = worker->role != ROLE_WORKER || i % worker_n == worker->heritage->index
                       ? ACCEPTOR_OWN
                       : ACCEPTOR_SIBLING;
        if ((kind == ACCEPTOR_SIBLING) == siblings &&
            add_acceptor(worker, listener, listener->fds[i], kind) == -1)
            return -1;
    }
    return 0;
}

int accept_init(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;
    struct listener *listener;

    acceptors_init(worker);
    if (accept_init_passing(worker) == -1)
        return -1;
    if (accept->sharing == SHARING_MUTEX)
        accept_mutex_init(&accept->mutex, worker->heritage->shared, worker->heritage->slot,
            (uint64_t)worker->cycle->events.accept_mutex_delay, accept->balance == BALANCE_CLIENTS);

    STAILQ_FOREACH (listener, &worker->cycle->stream.listeners.list, link)
        if (add_acceptors(worker, listener, false) == -1 ||
            (accept->balance == BALANCE_CLIENTS && add_acceptors(worker, listener, true) == -1))
            return -1;
    return 0;
}

void accept_open(struct worker *worker)
{
    assert(worker->phase == WORKER_READY || worker->phase == WORKER_SERVING);
    if (worker->accept.phase == ACCEPT_CLOSED)
        acceptors_set_phase(worker, ACCEPT_OPEN);
    if (worker->phase == WORKER_READY)
        worker_set_phase(worker, WORKER_SERVING);
    acceptors_update(worker);
}

void accept_rescan(struct worker *worker)
{
    acceptors_wake_dormant(worker);
    ACCEPTORS_FOREACH (acceptor, &worker->accept) {
        if (!acceptor->source.listening)
            continue;
        acceptor_raise_batch(acceptor, ACCEPTOR_RESCAN);
        loop_post(&worker->stream.net.loop, &acceptor->source.events[EVENT_READ], QUEUE_ACCEPT);
    }
}

/* Accepts the waiting clients of an unwatched listener, and closes the listener. The descriptor may
 * be the last, at whose close the kernel resets all connections of the backlog: only a client
 * connecting after the last accept is lost. */
static void release_listener(struct worker *worker, struct acceptor *acceptor)
{
    struct source *source = &acceptor->source;
    int fd = source->fd;

    assert(source->in_use && !source->listening && fd != -1);
    acceptor_raise_batch(acceptor, ACCEPTOR_RESCAN);
    if (worker->accept.phase != ACCEPT_CLOSED && worker->phase != WORKER_ENDING)
        accept_from_listener(worker, acceptor); /* suspended or not: a shortage may be over */
    listener_close_socket(acceptor->listener, fd);
    source->fd = -1;
    source_close(&worker->stream.net.loop, source, false);
}

void accept_release(struct worker *worker)
{
    struct acceptors *accept = &worker->accept;
    struct loop *loop = &worker->stream.net.loop;
    struct listener *listener;
    struct acceptor *acceptor;
    bool has_siblings = accept->balance == BALANCE_CLIENTS;

    assert(accept->phase != ACCEPT_RELEASED);
    if (accept->phase != ACCEPT_CLOSED)
        accept_wake_another(worker, -1);
    accept_end_passing(worker);
    STAILQ_FOREACH (listener, &worker->cycle->stream.listeners.list, link) {
        if (accept->phase != ACCEPT_CLOSED && !has_siblings) /* whose workers may have ended */
            add_acceptors(worker, listener, true);
        if (worker->role == ROLE_SINGLE) /* the master does it for its workers */
            listener_unlink(listener, &worker->log);
    }
    acceptors_disarm(worker);
    while ((acceptor = STAILQ_FIRST(&accept->list)) != NULL) {
        STAILQ_REMOVE_HEAD(&accept->list, link);
        release_listener(worker, acceptor);
    }
    STAILQ_FOREACH (listener, &worker->cycle->stream.listeners.list, link)
        listener_close(listener);
    timer_del(loop, &accept->resume);
    timer_del(loop, &accept->mend);
    acceptors_set_phase(worker, ACCEPT_RELEASED);
}

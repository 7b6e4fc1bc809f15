/* SPDX-License-Identifier: BSD-2-Clause */
/* Who accepts, how much, and when not. */
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* A shortage is the same one, and not said again, while the last is not longer ago than this. */
#define SHORTAGE_MS 60000
/* Clients that are taken in one go at most, so that a flood keeps a worker from nothing else. */
#define BATCH_MAX 4096

enum outcome { ACCEPTED, FAILED, EMPTY, SHORT };

static struct fb_net *net_of(struct fb_worker *worker)
{
    return &worker->stream.net;
}

/* With the mutex, shared listeners are watched only by its holder. */
static bool is_watched(const struct fb_acceptors *accept, const struct fb_acceptor *acceptor)
{
    return accept->open && !accept->paused && (acceptor->own || !accept->mutex || accept->holds);
}

static void update_watching(struct fb_worker *worker)
{
    struct fb_acceptors *accept = &worker->accept;
    struct fb_loop *loop = &net_of(worker)->loop;
    bool failed = false;

    accept->watching = accept->holds && !accept->paused;
    for (unsigned i = 0; i < accept->n; i++) {
        struct fb_source *source = &accept->list[i]->source;

        if (!is_watched(accept, accept->list[i]))
            fb_listener_disarm(loop, source);
        else if (fb_listener_arm(loop, source, accept->exclusive && !accept->list[i]->own) == -1)
            failed = true;
    }
    if (failed) /* the kernel is short of memory: nobody else may serve it */
        fb_timer_set(loop, &accept->resume, (uint64_t)worker->cycle->events.accept_mutex_delay);
}

/* Stops accepting for a while. Clients wait in the backlog, for us or another worker. */
static void pause_accepting(struct fb_worker *worker, bool full, int error)
{
    struct fb_acceptors *accept = &worker->accept;
    struct fb_net *net = net_of(worker);
    uint64_t now = net->loop.clock.mono_ms;

    if (accept->shortage_at == 0 || now - accept->shortage_at > SHORTAGE_MS) {
        if (full)
            fb_log(&worker->log, FB_ALERT, 0,
                "%" PRIu32 " worker_connections are not enough, accepting is suspended",
                net->connections_max);
        else
            fb_log(&worker->log, FB_CRIT, error, "accept4() failed, accepting is suspended");
    }
    accept->shortage_at = now;
    accept->paused = true;
    accept->full = full;
    update_watching(worker);
    fb_timer_set(&net->loop, &accept->resume, (uint64_t)worker->cycle->events.accept_mutex_delay);
    if (accept->exclusive) /* the kernel may have woken us alone for clients that we leave */
        fb_worker_tell(worker, FB_MESSAGE_LOOK);
}

static void resume_accepting(struct fb_worker *worker)
{
    struct fb_acceptors *accept = &worker->accept;

    if (!accept->paused)
        return;
    fb_timer_del(&net_of(worker)->loop, &accept->resume);
    accept->paused = accept->full = false;
    update_watching(worker);
}

static void resume_expired(struct fb_loop *loop, struct fb_timer *timer)
{
    struct fb_worker *worker = fb_loop_worker(loop);

    (void)timer;
    if (worker->accept.paused)
        resume_accepting(worker);
    else
        update_watching(worker); /* one could not be watched */
}

static void slot_released(struct fb_net *net)
{
    struct fb_worker *worker = fb_loop_worker(&net->loop);

    if (worker->accept.full)
        resume_accepting(worker);
}

static enum outcome accept_failed(struct fb_worker *worker, int error)
{
    switch (error) {
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
        fb_log(&worker->log, FB_INFO, error, "accept4() failed");
        return FAILED;
    default: /* a shortage, or a broken listener: to try again at once would be in vain */
        pause_accepting(worker, false, error);
        return SHORT;
    }
}

static enum outcome accept_one(struct fb_worker *worker, struct fb_acceptor *acceptor)
{
    struct fb_net *net = net_of(worker);
    struct fb_address peer = { .length = sizeof(peer.un) };
    struct fb_io_result result;
    int fd;

    if (net->connection_n == net->connections_max && !fb_stream_drop_kept(&worker->stream)) {
        pause_accepting(worker, true, 0);
        return SHORT;
    }
    result = acceptor->source.io->accept(&acceptor->source, &fd, &peer.any, &peer.length);
    if (result.status == FB_IO_AGAIN_READ)
        return EMPTY;
    if (result.status != FB_IO_DONE)
        return accept_failed(worker, result.error);

    fb_count(net->counters, FB_ACCEPTS, 1);
    if (fb_session_start(&worker->stream, acceptor->listener->owner, fd, &peer.any) == NULL)
        return SHORT;
    worker->accept.disabled =
        (int64_t)net->connections_max / 8 - (net->connections_max - net->connection_n);
    return ACCEPTED;
}

/* A look ends with the last client, or with a pause, of which the others are told; else who comes
 * after the last slot was taken may find it free again. */
static bool goes_on(const struct fb_net *net, enum outcome outcome, bool look)
{
    return outcome != EMPTY && outcome != SHORT &&
           (look || net->connection_n < net->connections_max);
}

static void acceptor_readable(struct fb_loop *loop, struct fb_source *source)
{
    struct fb_acceptor *acceptor = fb_container(source, struct fb_acceptor, source);
    struct fb_worker *worker = fb_loop_worker(loop);
    bool look = acceptor->look;
    bool many = look || worker->cycle->events.multi_accept;
    enum outcome outcome;
    int n = 0;

    acceptor->look = false;
    do
        outcome = accept_one(worker, acceptor);
    while (many && goes_on(net_of(worker), outcome, look) && ++n < BATCH_MAX);
    source->events[FB_READ].ready = false; /* the mechanism says again what is left */
}

static const struct fb_source_ops acceptor_ops = { .run = { [FB_READ] = acceptor_readable } };

static int add_acceptor(struct fb_worker *worker, struct fb_listener *listener, int fd)
{
    struct fb_source *source = fb_source_get(&net_of(worker)->loop.sources);
    struct fb_acceptor *acceptor;

    static_assert(sizeof(*acceptor) <= sizeof(struct fb_conn), "it lies in a connection's slot");
    if (source == NULL) {
        fb_log(&worker->log, FB_EMERG, 0, "no slot for the listener %s", listener->text);
        return -1;
    }
    acceptor = fb_container(source, struct fb_acceptor, source);
    source->fd = fd;
    source->ops = &acceptor_ops;
    source->io = net_of(worker)->loop.mechanism->io;
    source->io_state = net_of(worker)->loop.mechanism_state;
    source->queue = FB_QUEUE_ACCEPT;
    acceptor->listener = listener;
    acceptor->own = listener->options.reuseport;
    worker->accept.list[worker->accept.n++] = acceptor;
    return 0;
}

/* A reuseport socket is a queue: it has one worker, and those beyond the number of workers, which a
 * larger number has left, are shared out among them. */
static bool is_ours(const struct fb_worker *worker, const struct fb_listener *listener, unsigned i)
{
    return !listener->options.reuseport || worker->role != FB_ROLE_WORKER ||
           i % (unsigned)worker->cycle->core.worker_processes == worker->heritage->index;
}

static int add_acceptors(struct fb_worker *worker, struct fb_listener *listener, bool ours)
{
    for (unsigned i = 0; i < listener->fd_n; i++)
        if (is_ours(worker, listener, i) == ours &&
            add_acceptor(worker, listener, listener->fds[i]) == -1)
            return -1;
    return 0;
}

int fb_accept_init(struct fb_worker *worker)
{
    const struct fb_events_settings *events = &worker->cycle->events;
    struct fb_acceptors *accept = &worker->accept;
    bool several = worker->role == FB_ROLE_WORKER && worker->cycle->core.worker_processes > 1;
    struct fb_listener *listener;
    unsigned n = 0;

    accept->mutex = several && events->accept_mutex;
    accept->exclusive = several && !events->accept_mutex && events->mechanism->exclusive;
    accept->resume.expired = resume_expired;
    net_of(worker)->released = slot_released;

    STAILQ_FOREACH (listener, &worker->cycle->stream.listeners, link)
        n += listener->fd_n;
    accept->list = calloc(n + 1, sizeof(accept->list[0]));
    if (accept->list == NULL) {
        fb_log(&worker->log, FB_EMERG, errno, "no memory for the listeners");
        return -1;
    }
    STAILQ_FOREACH (listener, &worker->cycle->stream.listeners, link)
        if (add_acceptors(worker, listener, true) == -1)
            return -1;
    return 0;
}

void fb_accept_open(struct fb_worker *worker)
{
    worker->accept.open = true;
    update_watching(worker);
}

void fb_accept_look(struct fb_worker *worker)
{
    struct fb_acceptors *accept = &worker->accept;
    struct fb_loop *loop = &net_of(worker)->loop;

    for (unsigned i = 0; i < accept->n; i++) {
        struct fb_source *source = &accept->list[i]->source;

        if (!source->listening)
            continue;
        accept->list[i]->look = true;
        fb_loop_post(loop, &source->events[FB_READ], FB_QUEUE_ACCEPT);
    }
}

/* Who steps back leaves nobody behind: another may hold the socket open no longer than we do, or may have
 * died. The kernel resets whoever it lets in between the last look and the last close. */
static void step_back(struct fb_worker *worker, struct fb_acceptor *acceptor)
{
    struct fb_loop *loop = &net_of(worker)->loop;
    struct fb_source *source = &acceptor->source;
    int fd = source->fd;

    fb_listener_disarm(loop, source);
    acceptor->look = true;
    if (worker->accept.open && !worker->ending) /* a shortage may be over */
        acceptor_readable(loop, source);
    fb_listener_drop(acceptor->listener, fd);
    source->fd = -1;
    fb_source_close(loop, source, false);
}

void fb_accept_close(struct fb_worker *worker)
{
    struct fb_acceptors *accept = &worker->accept;
    struct fb_listener *listener;

    STAILQ_FOREACH (listener, &worker->cycle->stream.listeners, link) {
        if (accept->open)
            add_acceptors(worker, listener, false);
        if (worker->role == FB_ROLE_SINGLE) /* else the master's to do */
            fb_listener_unlink(listener, &worker->log);
    }
    for (unsigned i = 0; i < accept->n; i++)
        step_back(worker, accept->list[i]);
    STAILQ_FOREACH (listener, &worker->cycle->stream.listeners, link)
        fb_listener_close(listener);
    fb_timer_del(&net_of(worker)->loop, &accept->resume);
    free(accept->list);
    accept->list = NULL;
    accept->n = 0;
    accept->open = false;
}

/* A worker that has taken more than its share leaves the mutex alone for some turns. Turns that
 * wait for nothing else become shorter, the more of them are left. */
static int64_t back_off(struct fb_acceptors *accept, int64_t delay)
{
    int64_t turns = accept->disabled--;

    return turns < delay ? delay / turns : 1;
}

/* accept_disabled leaves the mutex to others; it would only lose time where no worker has fewer
 * connections than we do. */
static bool leaves_mutex(struct fb_worker *worker)
{
    uint64_t totals[FB_COUNTERS], ours = net_of(worker)->client_n;

    if (worker->accept.disabled <= 0)
        return false;
    fb_shared_totals(worker->heritage->shared, totals);
    return ours * (uint64_t)worker->cycle->core.worker_processes > totals[FB_ACTIVE];
}

void fb_accept_before(struct fb_worker *worker, int *timeout)
{
    struct fb_acceptors *accept = &worker->accept;
    struct fb_heritage const *heritage = worker->heritage;
    int64_t delay = worker->cycle->events.accept_mutex_delay;

    if (!accept->mutex || !accept->open)
        return;
    if (leaves_mutex(worker))
        delay = back_off(accept, delay);
    else if (!accept->paused)
        accept->holds = fb_shm_lock_try(&heritage->shared->accept_mutex, heritage->slot);

    if (accept->holds != accept->watching)
        update_watching(worker);
    if (!accept->holds && (*timeout == -1 || *timeout > delay))
        *timeout = (int)delay;
}

void fb_accept_after(struct fb_worker *worker)
{
    struct fb_acceptors *accept = &worker->accept;

    if (!accept->holds)
        return;
    fb_shm_lock_release(&worker->heritage->shared->accept_mutex, worker->heritage->slot);
    accept->holds = false;
}

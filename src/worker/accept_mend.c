/* SPDX-License-Identifier: BSD-2-Clause */
/* Leaves listening sockets alone that somebody has shut down, has the master make them listen
 * again, and takes the sockets that replace them. A listener is broken only until the timer
 * `mend`. */
#include "os/descriptor.h"
#include "worker/accept_private.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* After this many events in a row without a client a unix socket is looked at. */
#define EMPTY_MOST 4
/* The next try of a listener that was shut down. */
#define MEND_MS 100

/* Somebody may shut many listeners down again and again; the master looks at all of them when it
 * is told of one. */
static const struct token_rate report_rate = { .burst = 1024, .per_second = 100 };

static struct net *net_of(struct worker *worker)
{
    return &worker->stream.net;
}

void accept_note_broken(struct worker *worker, struct acceptor *acceptor)
{
    struct loop *loop = &net_of(worker)->loop;

    acceptor->broken = true;
    source_disarm_listener(loop, &acceptor->source);
    timer_set(loop, &worker->accept.mend, MEND_MS);
    if (token_bucket_take(&worker->accept.reports, &report_rate, loop->clock.mono_ms))
        channel_end_try(&worker->to_master, &(struct channel_message) { MESSAGE_LISTENER_BROKEN,
                                                (uint32_t)acceptor->source.fd, -1 });
}

void accept_mend_expired(struct loop *loop, struct timer *timer)
{
    struct worker *worker = worker_of_loop(loop);
    struct acceptors *accept = &worker->accept;

    assert(timer == &accept->mend);
    for (unsigned i = 0; i < accept->n; i++) {
        struct acceptor *acceptor = accept->list[i];

        if (acceptor->broken && worker->role == ROLE_SINGLE &&
            listener_is_broken(acceptor->listener, acceptor->source.fd))
            listener_mend(acceptor->listener, acceptor->source.fd, &worker->cycle->stream.listeners,
                acceptor->listener->kept_n == 0, &worker->log);
        acceptor->broken = false;
    }
    accept_update_watching(worker);
}

void accept_replace_socket(struct worker *worker, uint32_t number, int fd)
{
    struct acceptors *accept = &worker->accept;
    struct loop *loop = &net_of(worker)->loop;

    assert(fd >= 0);
    for (unsigned i = 0; i < accept->n; i++) {
        struct acceptor *acceptor = accept->list[i];

        if ((uint32_t)acceptor->source.fd != number)
            continue;
        /* the mechanism would go on to watch the old socket, which others have too */
        source_disarm_listener(loop, &acceptor->source);
        acceptor->broken = false;
        if (descriptor_replace(fd, acceptor->source.fd) == -1)
            log_write(&worker->log, LEVEL_ALERT, errno, "listener %s could not be replaced",
                acceptor->listener->text);
        accept_update_watching(worker);
    }
}

/* accept() of a unix socket that was shut down only says that nobody waits, again and again. */
void accept_note_empty(struct worker *worker, struct acceptor *acceptor)
{
    if (acceptor->lent)
        accept_give_back(worker, acceptor);
    if (++acceptor->empty_n % EMPTY_MOST == 0 &&
        acceptor->listener->address.any.sa_family == AF_UNIX &&
        listener_is_broken(acceptor->listener, acceptor->source.fd))
        accept_note_broken(worker, acceptor);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Room for a client that waits, where there is no slot or no descriptor for it: another worker's,
 * or idle connections give way. Protocols are called for the ends of these: not while clients are
 * accepted, under the mutex, but from the normal queue of the same turn, by the listener's WRITE
 * event, which it has no other use for. */
#include "session/idle.h"
#include "worker/accept_private.h"
#include "worker/worker.h"

#include <inttypes.h>
#include <stdio.h>

/* A shortage is logged again only when the latest is longer ago than this. */
#define SHORTAGE_MS 60000

void accept_note_shortage(struct worker *worker, enum accept_phase phase, int error)
{
    struct acceptors *accept = &worker->accept;
    uint64_t now = worker->stream.net.loop.clock.mono_ms;
    bool is_old = accept->shortage_at == 0 || now - accept->shortage_at > SHORTAGE_MS;

    assert(phase == ACCEPT_PAUSED || phase == ACCEPT_FULL);
    accept->shortage_at = now;
    if (is_old && phase == ACCEPT_FULL)
        log_write(&worker->log, LEVEL_ALERT, 0,
            "%" PRIu32 " worker_connections are not enough, accepting is suspended",
            worker->stream.net.connections_max);
    else if (is_old)
        log_write(&worker->log, LEVEL_CRIT, error, "accept4() failed, accepting is suspended");
}

static void reclaim(struct worker *worker)
{
    struct net *net = &worker->stream.net;
    char text[64] = "descriptors are not enough";

    if (net_lacks_slots(net, worker->accept.short_slots))
        snprintf(text, sizeof(text), "%" PRIu32 " worker_connections are not enough",
            net->connections_max);
    idle_reclaim(&worker->stream, NULL, text);
    net_flush(net);
}

bool accept_make_room(struct worker *worker, struct acceptor *acceptor)
{
    struct source *source = &acceptor->source;

    if (!idle_can_reclaim(&worker->stream))
        return false;
    if (accept_leaves_short(worker, acceptor))
        return true;
    if (source->listening)
        loop_post(&worker->stream.net.loop, &source->events[EVENT_WRITE], QUEUE_NORMAL);
    else /* the listener is released, outside of the turn */
        reclaim(worker);
    return true;
}

void accept_room_wanted(struct loop *loop, struct source *source)
{
    const struct acceptor *acceptor = container_of(source, struct acceptor, source);

    reclaim(worker_of_loop(loop));
    if (acceptor->rescan && source->listening) /* the rest may not be reported by itself */
        loop_post(loop, &source->events[EVENT_READ], QUEUE_ACCEPT);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts every protocol once per worker, stops protocols, and frees the states. */
#include "worker/protocols.h"

#include "shm/siphash.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

const char *worker_protocols_name(const struct worker *worker, unsigned index)
{
    const fb_protocol *protocol =
        index < STREAM_PROTOCOLS_MAX ? worker->protocols[index].protocol : NULL;

    return protocol != NULL ? protocol->name : "unknown";
}

static int start_protocol(struct worker *worker, const struct server *server)
{
    static const uint64_t key[2] = { 0, 0 }; /* the mark is equal in every configuration */
    const fb_protocol *protocol = server->protocol;
    struct fb_worker *own = &worker->protocols[server->protocol_index];
    int result = 0;

    assert(server->protocol_index < STREAM_PROTOCOLS_MAX && own->state == NULL);
    own->worker = worker;
    own->index = server->protocol_index;
    own->protocol = protocol;
    own->mark = siphash(key, protocol->name, strlen(protocol->name));
    RB_INIT(&own->timers);
    if (protocol->worker_state > 0) {
        own->state = memory_alloc(worker->stream.net.memory, protocol->worker_state);
        if (own->state == NULL)
            return worker_fail(worker, errno, "no memory for \"%s\"", protocol->name);
        memset(own->state, 0, protocol->worker_state);
    }
    if (server->metrics != NULL)
        own->row = shm_metrics_row(
            zone_memory(server->metrics), server->metrics->shape, worker->heritage->slot.slot);
    if (protocol->worker_start != NULL)
        WORKER_CALL(own, CALLBACK_WORKER_START, result = protocol->worker_start(own, own->state));
    if (result != 0)
        return worker_fail(worker, 0, "\"%s\" could not start in this worker", protocol->name);
    net_flush(&worker->stream.net);
    own->started = true;
    return 0;
}

int worker_protocols_start(struct worker *worker)
{
    const struct server *server;

    assert(worker->phase == WORKER_STARTING);
    STAILQ_FOREACH (server, &worker->cycle->stream.servers, link)
        if (server->protocol != NULL && !worker->protocols[server->protocol_index].started &&
            start_protocol(worker, server) == -1)
            return -1;
    return 0;
}

void worker_protocols_stop(struct worker *worker)
{
    struct net *net = &worker->stream.net;

    assert(worker->phase == WORKER_ENDING && net->connection_n == 0);
    map_watch_done(worker);
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++) {
        struct fb_worker *own = &worker->protocols[i];

        if (own->worker == NULL)
            continue;
        id_timers_clear(&own->timers, &net->loop, net->memory);
        if (own->started && own->protocol->worker_stop != NULL)
            WORKER_CALL(own, CALLBACK_WORKER_STOP, own->protocol->worker_stop(own, own->state));
        id_timers_clear(&own->timers, &net->loop, net->memory); /* of worker_stop itself */
        watches_remove_all(own);
        memory_release(net->memory, own->state);
        own->state = NULL;
        own->row = NULL;
        own->started = false;
    }
}

void worker_protocols_drain(struct worker *worker, uint64_t deadline)
{
    assert(worker->phase == WORKER_DRAINING);
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++) {
        struct fb_worker *own = &worker->protocols[i];

        if (own->started && WORKER_HAS(own, draining))
            WORKER_CALL(own, CALLBACK_WORKER_DRAINING,
                own->protocol->worker_ops->draining(own, own->state, deadline));
    }
    net_flush(&worker->stream.net);
}

bool worker_protocols_wait(const struct worker *worker)
{
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        if (worker->protocols[i].unanswered > 0)
            return true;
    return false;
}

struct fb_worker *worker_protocol_of_mark(struct worker *worker, uint64_t mark)
{
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        if (worker->protocols[i].started && worker->protocols[i].mark == mark)
            return &worker->protocols[i];
    return NULL;
}

static void protocol_timer_expired(struct loop *loop, struct timer *expired)
{
    struct worker *worker = worker_of_loop(loop);
    struct fb_worker *own = container_of(id_timers_owner(expired), struct fb_worker, timers);
    uint32_t id;

    assert(own->worker == worker && own->started);
    if (!id_timers_take(expired, loop, worker->stream.net.memory, &id) || !WORKER_HAS(own, timer))
        return;
    WORKER_CALL(own, CALLBACK_WORKER_TIMER, own->protocol->worker_ops->timer(own, own->state, id));
    net_flush(&worker->stream.net);
}

int worker_protocol_timer(struct fb_worker *handle, uint32_t id, uint64_t ms)
{
    struct net *net = &worker_of(handle)->stream.net;

    return id_timers_set(&handle->timers, &net->loop, net->memory, protocol_timer_expired, id, ms);
}

void worker_protocol_timer_cancel(struct fb_worker *handle, uint32_t id)
{
    struct net *net = &worker_of(handle)->stream.net;

    id_timers_cancel(&handle->timers, &net->loop, net->memory, id);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts each protocol once when its worker starts, and stops it when the worker ends. A protocol's
 * state is freed only here. */
#include "worker/protocols.h"

#include "worker/messages_private.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

const char *worker_protocols_name(const struct worker *worker, unsigned index)
{
    const struct server *server;

    STAILQ_FOREACH (server, &worker->cycle->stream.servers, link)
        if (server->protocol != NULL && server->protocol_index == index)
            return server->protocol->name;
    return "unknown";
}

/* Calls `worker_start`, if there is one. */
static int call_start(struct worker *worker, const struct server *server, struct fb_worker *handle)
{
    const fb_protocol *protocol = server->protocol;
    struct heartbeat *heartbeat = worker->stream.net.heartbeat;
    int result;

    if (protocol->worker_start == NULL)
        return 0;
    heartbeat_begin(heartbeat, CALLBACK_WORKER_START, server->protocol_index);
    result = protocol->worker_start(handle, handle->state);
    worker_check_fork(worker);
    heartbeat_end(heartbeat);
    return result;
}

static int start_protocol(struct worker *worker, const struct server *server)
{
    const fb_protocol *protocol = server->protocol;
    struct fb_worker *own = &worker->protocols[server->protocol_index];

    assert(server->protocol_index < STREAM_PROTOCOLS_MAX && own->state == NULL);
    own->worker = worker;
    own->index = server->protocol_index;
    own->protocol = protocol;
    own->mark = messages_mark(protocol->name);
    RB_INIT(&own->timers);
    if (protocol->worker_state > 0) {
        own->state = memory_alloc(worker->stream.net.memory, protocol->worker_state);
        if (own->state == NULL) {
            log_write(&worker->log, LEVEL_EMERG, errno, "no memory for \"%s\"", protocol->name);
            return -1;
        }
        memset(own->state, 0, protocol->worker_state);
    }
    if (server->metrics != NULL)
        own->row = shm_metrics_row(
            zone_memory(server->metrics), server->metrics->shape, worker->heritage->slot.slot);
    if (call_start(worker, server, own) != 0) {
        log_write(
            &worker->log, LEVEL_EMERG, 0, "\"%s\" could not start in this worker", protocol->name);
        return -1;
    }
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

static void clear_timers(struct fb_worker *own)
{
    if (own->worker != NULL)
        id_timers_clear(
            &own->timers, &own->worker->stream.net.loop, own->worker->stream.net.memory);
}

void worker_protocols_stop(struct worker *worker)
{
    const struct server *server;

    assert(worker->phase == WORKER_ENDING && worker->stream.net.connection_n == 0);
    map_watch_done(worker);
    STAILQ_FOREACH (server, &worker->cycle->stream.servers, link) {
        struct fb_worker *own = &worker->protocols[server->protocol_index];

        if (server->protocol == NULL)
            continue;
        clear_timers(own);
        heartbeat_begin(worker->stream.net.heartbeat, CALLBACK_WORKER_STOP, server->protocol_index);
        if (own->started && server->protocol->worker_stop != NULL)
            server->protocol->worker_stop(own, own->state);
        worker_check_fork(worker);
        heartbeat_end(worker->stream.net.heartbeat);
        clear_timers(own); /* of worker_stop itself */
        watches_remove_all(own);
        memory_release(worker->stream.net.memory, own->state);
        own->state = NULL;
        own->row = NULL;
        own->started = false;
    }
}

void worker_protocols_drain(struct worker *worker, uint64_t deadline)
{
    struct heartbeat *heartbeat = worker->stream.net.heartbeat;

    assert(worker->phase == WORKER_DRAINING);
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++) {
        struct fb_worker *own = &worker->protocols[i];

        if (!own->started || !WORKER_HAS(own, draining))
            continue;
        heartbeat_begin(heartbeat, CALLBACK_WORKER_DRAINING, i);
        own->protocol->worker_ops->draining(own, own->state, deadline);
        worker_check_fork(worker);
        heartbeat_end(heartbeat);
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

static void timer_expired(struct loop *loop, struct timer *expired)
{
    struct worker *worker = worker_of_loop(loop);
    struct fb_worker *own = container_of(id_timers_owner(expired), struct fb_worker, timers);
    struct heartbeat *heartbeat = worker->stream.net.heartbeat;
    uint32_t id;

    assert(own->worker == worker && own->started);
    if (!id_timers_take(expired, loop, worker->stream.net.memory, &id) || !WORKER_HAS(own, timer))
        return;
    heartbeat_begin(heartbeat, CALLBACK_WORKER_TIMER, own->index);
    own->protocol->worker_ops->timer(own, own->state, id);
    worker_check_fork(worker);
    heartbeat_end(heartbeat);
    net_flush(&worker->stream.net);
}

int worker_protocol_timer(struct fb_worker *handle, uint32_t id, uint64_t ms)
{
    struct net *net = &worker_of(handle)->stream.net;

    return id_timers_set(&handle->timers, &net->loop, net->memory, timer_expired, id, ms);
}

void worker_protocol_timer_cancel(struct fb_worker *handle, uint32_t id)
{
    struct net *net = &worker_of(handle)->stream.net;

    id_timers_cancel(&handle->timers, &net->loop, net->memory, id);
}

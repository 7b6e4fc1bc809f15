/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts each protocol once when its worker starts, and stops it when the worker ends. A protocol's
 * state is freed only here. */
#include "worker/protocols.h"

#include "worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Calls `worker_start`, if there is one. */
static int call_start(struct fb_worker *worker, const struct server *server, void *state)
{
    const fb_protocol *protocol = server->protocol;
    struct heartbeat *heartbeat = worker->stream.net.heartbeat;
    int result;

    if (protocol->worker_start == NULL)
        return 0;
    heartbeat_begin(heartbeat, CALLBACK_WORKER_START, server->protocol_index);
    result = protocol->worker_start(worker, state);
    worker_check_fork(worker);
    heartbeat_end(heartbeat);
    return result;
}

static int start_protocol(struct fb_worker *worker, const struct server *server)
{
    const fb_protocol *protocol = server->protocol;
    struct worker_protocol *own = &worker->protocols[server->protocol_index];

    assert(server->protocol_index < STREAM_PROTOCOLS_MAX && own->state == NULL);
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
    if (call_start(worker, server, own->state) != 0) {
        log_write(
            &worker->log, LEVEL_EMERG, 0, "\"%s\" could not start in this worker", protocol->name);
        return -1;
    }
    net_flush(&worker->stream.net);
    own->started = true;
    return 0;
}

int worker_protocols_start(struct fb_worker *worker)
{
    const struct server *server;

    assert(worker->phase == WORKER_STARTING);
    STAILQ_FOREACH (server, &worker->cycle->stream.servers, link)
        if (server->protocol != NULL && !worker->protocols[server->protocol_index].started &&
            start_protocol(worker, server) == -1)
            return -1;
    return 0;
}

void worker_protocols_stop(struct fb_worker *worker)
{
    const struct server *server;

    assert(worker->phase == WORKER_ENDING && worker->stream.net.connection_n == 0);
    STAILQ_FOREACH (server, &worker->cycle->stream.servers, link) {
        struct worker_protocol *own = &worker->protocols[server->protocol_index];

        if (server->protocol == NULL)
            continue;
        heartbeat_begin(worker->stream.net.heartbeat, CALLBACK_WORKER_STOP, server->protocol_index);
        if (own->started && server->protocol->worker_stop != NULL)
            server->protocol->worker_stop(worker, own->state);
        worker_check_fork(worker);
        heartbeat_end(worker->stream.net.heartbeat);
        memory_release(worker->stream.net.memory, own->state);
        *own = (struct worker_protocol) { .state = NULL };
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts each protocol once when its worker starts, and stops it when the worker ends. A protocol's
 * state is freed only here. */
#include "worker/protocols.h"

#include "worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static int start_protocol(struct fb_worker *worker, const struct fb_server *server)
{
    const fb_protocol *protocol = server->protocol;
    struct fb_worker_protocol *own = &worker->protocols[server->protocol_index];

    assert(server->protocol_index < FB_PROTOCOLS_MAX && own->state == NULL);
    if (protocol->worker_state > 0) {
        own->state = fb_memory_alloc(worker->stream.net.memory, protocol->worker_state);
        if (own->state == NULL) {
            fb_log(&worker->log, FB_EMERG, errno, "no memory for \"%s\"", protocol->name);
            return -1;
        }
        memset(own->state, 0, protocol->worker_state);
    }
    if (server->metrics != NULL)
        own->row = fb_shm_metrics_row(fb_zone_memory(server->metrics), worker->heritage->slot.slot);
    if (protocol->worker_start != NULL && protocol->worker_start(worker, own->state) != 0) {
        fb_log(&worker->log, FB_EMERG, 0, "\"%s\" could not start in this worker", protocol->name);
        return -1;
    }
    fb_net_settle(&worker->stream.net);
    own->started = true;
    return 0;
}

int fb_protocols_start(struct fb_worker *worker)
{
    const struct fb_server *server;

    assert(worker->phase == WORKER_STARTING);
    STAILQ_FOREACH (server, &worker->cycle->stream.servers, link)
        if (server->protocol != NULL && !worker->protocols[server->protocol_index].started &&
            start_protocol(worker, server) == -1)
            return -1;
    return 0;
}

void fb_protocols_stop(struct fb_worker *worker)
{
    const struct fb_server *server;

    assert(worker->phase == WORKER_ENDING && worker->stream.net.connection_n == 0);
    STAILQ_FOREACH (server, &worker->cycle->stream.servers, link) {
        struct fb_worker_protocol *own = &worker->protocols[server->protocol_index];

        if (server->protocol == NULL)
            continue;
        fb_heartbeat_begin(
            worker->stream.net.heartbeat, FB_CALLBACK_WORKER_STOP, server->protocol_index);
        if (own->started && server->protocol->worker_stop != NULL)
            server->protocol->worker_stop(worker, own->state);
        fb_heartbeat_end(worker->stream.net.heartbeat);
        fb_memory_release(worker->stream.net.memory, own->state);
        *own = (struct fb_worker_protocol) { .state = NULL };
    }
}

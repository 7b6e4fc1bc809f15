/* SPDX-License-Identifier: BSD-2-Clause */
/* Starts every protocol once per worker, calls protocols for timers and names, and stops them. A
 * worker whose configuration has no use for a resolver has none. */
#include "worker/protocols.h"

#include "session/use.h"
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

/* ---- Names, of fb_resolve() ---- */

static void tell_resolution(struct names *names, struct fb_worker *handle, names_resolved *resolved,
    const fb_names *what, void *arg)
{
    assert(worker_of_loop(names->host.loop)->names == names);
    if (handle != NULL)
        WORKER_CALL(handle, CALLBACK_RESOLVED, resolved(handle, what, arg));
    else /* the daemon's own question, in which no protocol can get stuck */
        resolved(NULL, what, arg);
}

static void flush_resolutions(struct names *names)
{
    net_flush(net_of_loop(names->host.loop));
}

/* Names of groups are for a helper process, if any. */
static unsigned users_of(const struct worker *worker)
{
    return (worker->heritage->task != TASK_ASK ? NAMES_OF_SESSIONS : 0) |
           (worker->heritage->task != TASK_SERVE ? NAMES_OF_GROUPS : 0);
}

unsigned worker_names_slots(const struct worker *worker)
{
    return names_slots(&worker->cycle->stream.system, users_of(worker));
}

int worker_names_open(struct worker *worker)
{
    struct net *net = &worker->stream.net;

    assert(worker->phase == WORKER_STARTING && worker->names == NULL);
    if (worker_names_slots(worker) == 0)
        return 0;
    worker->names =
        names_create(&net->loop, net->memory, &worker->cycle->stream.system, users_of(worker));
    if (worker->names == NULL)
        return -1;
    worker->names->deliver = tell_resolution;
    worker->names->delivered = flush_resolutions;
    return 0;
}

struct fb_resolution *worker_resolve(
    struct fb_worker *handle, struct fb_conn *owner, struct names_query *query)
{
    struct worker *worker = worker_of(handle);
    const struct stream_settings *stream = &worker->cycle->stream;
    const struct server_settings *server =
        owner != NULL ? &session_server_of(owner)->settings : NULL;
    struct session_use *use = NULL;
    int error = worker->names != NULL ? 0 : names_client_built() ? EPERM : ENOSYS;

    assert(query->resolved != NULL);
    if (error == 0 && owner != NULL) {
        use = conn_is_active(owner) ? session_use_create(owner) : NULL;
        error = use != NULL ? 0 : conn_is_active(owner) ? ENOMEM : ECANCELED;
    }
    if (error != 0) {
        errno = error;
        return NULL;
    }
    if (use != NULL)
        query->owned = &use->resolutions;
    query->handle = handle;
    if (query->timeout == 0)
        query->timeout =
            (uint64_t)(server != NULL ? server->resolver_timeout : stream->resolver_timeout);
    return names_resolve(
        worker->names, server != NULL ? server->resolver : stream->resolver, query);
}

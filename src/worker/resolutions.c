/* SPDX-License-Identifier: BSD-2-Clause */
/* Ties the resolvers (names/) to the worker, and calls protocols with the heartbeat around it. */
#include "worker/resolutions.h"

#include "session/use.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>

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
    static const unsigned users[] = {
        [TASK_SERVE] = NAMES_OF_SESSIONS,
        [TASK_ASK] = NAMES_OF_GROUPS,
        [TASK_ALL] = NAMES_OF_SESSIONS | NAMES_OF_GROUPS,
    };

    return users[worker->heritage->task];
}

unsigned resolutions_slots(const struct worker *worker)
{
    return names_slots(&worker->cycle->stream.system, users_of(worker));
}

int resolutions_open(struct worker *worker)
{
    struct net *net = &worker->stream.net;

    assert(worker->phase == WORKER_STARTING && worker->names == NULL);
    if (resolutions_slots(worker) == 0)
        return 0;
    worker->names =
        names_create(&net->loop, net->memory, &worker->cycle->stream.system, users_of(worker));
    if (worker->names == NULL)
        return -1;
    worker->names->deliver = tell_resolution;
    worker->names->delivered = flush_resolutions;
    return 0;
}

struct fb_resolution *resolutions_begin(
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

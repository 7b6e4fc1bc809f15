/* SPDX-License-Identifier: BSD-2-Clause */
/* Ties the resolvers (names/) to the worker, and calls protocols with the heartbeat around it. */
#include "worker/resolutions.h"

#include "session/use.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>

static struct worker *worker_of_names(const struct names *names)
{
    return worker_of_loop(names->host.loop);
}

static void tell_resolution(struct names *names, struct fb_worker *handle, names_resolved *resolved,
    const fb_names *what, void *arg)
{
    struct worker *worker = worker_of_names(names);

    if (handle == NULL) { /* the daemon's own question, in which no protocol can get stuck */
        resolved(NULL, what, arg);
        return;
    }
    assert(handle->worker == worker && worker->names == names);
    worker_callback_begin(handle, CALLBACK_RESOLVED);
    resolved(handle, what, arg);
    worker_callback_end(worker);
}

static void flush_resolutions(struct names *names)
{
    net_flush(&worker_of_names(names)->stream.net);
}

/* Names of groups are for a helper process, if any. */
static unsigned users_of(const struct worker *worker)
{
    switch (worker->heritage->task) {
    case TASK_SERVE:
        return NAMES_OF_SESSIONS;
    case TASK_ASK:
        return NAMES_OF_GROUPS;
    default:
        return NAMES_OF_SESSIONS | NAMES_OF_GROUPS;
    }
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

void resolutions_end(struct worker *worker)
{
    assert(worker->phase == WORKER_ENDING);
    if (worker->names != NULL)
        names_end(worker->names);
}

void resolutions_close(struct worker *worker)
{
    assert(worker->phase == WORKER_ENDING && worker->stream.net.connection_n == 0);
    names_destroy(&worker->names);
}

/* Makes a connection the owner; an errno where it cannot be. */
static int set_owner(struct fb_conn *owner, struct names_query *query)
{
    struct session_use *use = conn_is_active(owner) ? session_use_create(owner) : NULL;

    if (use == NULL)
        return conn_is_active(owner) ? ENOMEM : ECANCELED;
    query->owned = &use->resolutions;
    return 0;
}

struct fb_resolution *resolutions_begin(
    struct fb_worker *handle, struct fb_conn *owner, struct names_query *query)
{
    struct worker *worker = worker_of(handle);
    const struct stream_settings *stream = &worker->cycle->stream;
    const struct names_setting *setting = stream->resolver;
    int64_t timeout = stream->resolver_timeout;
    int error;

    assert(query->resolved != NULL);
    if (owner != NULL) {
        setting = session_server_of(owner)->settings.resolver;
        timeout = session_server_of(owner)->settings.resolver_timeout;
    }
    error = worker->names != NULL ? 0 : names_client_built() ? EPERM : ENOSYS;
    if (error == 0 && owner != NULL)
        error = set_owner(owner, query);
    if (error != 0) {
        errno = error;
        return NULL;
    }
    query->handle = handle;
    if (query->timeout == 0)
        query->timeout = (uint64_t)timeout;
    return names_resolve(worker->names, setting, query);
}

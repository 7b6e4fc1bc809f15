/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on the worker of a callback: state, clock, timers, random numbers, threads,
 * watched descriptors, names, references and messages. A reference names one connection or worker
 * for ever; only fb_find() turns a reference back into a handle. No call runs a callback, and only
 * the worker's loop makes them. */
#include "process/role.h"
#include "sdk/handle.h"
#include "worker/messages.h"
#include "worker/references.h"
#include "worker/watches.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

fb_worker *fb_worker_of(const fb_conn *conn)
{
    if (unlikely(conn->net == NULL)) /* a child of fork() */
        os_wiped_end();
    return worker_protocol_of(conn);
}

void *fb_own_state(fb_worker *worker)
{
    return worker_of(worker)->protocols[worker->index].state;
}

const void *fb_worker_conf(const fb_worker *worker, size_t i)
{
    const struct server *server;

    STAILQ_FOREACH (server, &worker_of(worker)->cycle->stream.servers, link)
        if (server->protocol == worker->protocol && i-- == 0)
            return server->protocol_conf;
    return NULL;
}

int fb_worker_timer(fb_worker *worker, uint32_t id, uint64_t ms)
{
    assert(role_is(ROLE_WORKER));
    return worker_protocol_timer(worker, id, ms);
}

void fb_worker_timer_cancel(fb_worker *worker, uint32_t id)
{
    assert(role_is(ROLE_WORKER));
    worker_protocol_timer_cancel(worker, id);
}

int64_t fb_wall_ms(const fb_worker *worker)
{
    return worker_of(worker)->stream.net.loop.clock.wall_ms;
}

uint64_t fb_mono_ms(const fb_worker *worker)
{
    return worker_of(worker)->stream.net.loop.clock.mono_ms;
}

void fb_random(fb_worker *worker, void *p, size_t n)
{
    assert(worker_of(worker)->random != NULL);
    worker_of(worker)->random(worker_of(worker), p, n);
}

int fb_run(fb_worker *worker, void (*work)(void *job), void (*done)(fb_worker *worker, void *job),
    const void *job, size_t n)
{
    return fb_run_in(worker, NULL, work, done, job, n);
}

int fb_run_in(fb_worker *worker, const fb_pool *pool, void (*work)(void *job),
    void (*done)(fb_worker *worker, void *job), const void *job, size_t n)
{
    const fb_pool *first = &worker_of(worker)->cycle->core.pool;

    assert(role_is(ROLE_WORKER));
    return jobs_run(worker, pool != NULL ? pool : first, work, done, job, n);
}

int fb_post(
    fb_worker *worker, void (*run)(fb_worker *worker, void *work), const void *work, size_t n)
{
    assert(role_is(ROLE_WORKER));
    return jobs_post(worker, run, work, n);
}

/* ---- Watched descriptors ---- */

fb_watch *fb_watch_fd(fb_worker *worker, int fd, unsigned events,
    void (*ready)(fb_worker *worker, fb_watch *watch, unsigned events, void *arg), void *arg)
{
    assert(role_is(ROLE_WORKER));
    return watches_add(worker, fd, events, ready, arg);
}

int fb_watch_set(fb_watch *watch, unsigned events)
{
    return watches_set(watch, events);
}

void fb_unwatch(fb_watch *watch)
{
    watches_remove(watch);
}

/* ---- Names ---- */

/* Copies options of any version of the header. */
static fb_resolve_options copy_resolve_options(const fb_resolve_options *options)
{
    fb_resolve_options own = { .size = sizeof(own) };

    if (options != NULL)
        memcpy(&own, options, options->size < sizeof(own) ? options->size : sizeof(own));
    return own;
}

static bool is_internet_address(const struct address *address)
{
    return address->any.sa_family == AF_INET || address->any.sa_family == AF_INET6;
}

fb_resolution *fb_resolve(fb_worker *worker, const char *name, fb_name_type type,
    const fb_resolve_options *options,
    void (*resolved)(fb_worker *worker, const fb_names *names, void *arg), void *arg)
{
    fb_resolve_options own = copy_resolve_options(options);
    struct address address;
    struct names_query query = {
        .name = name,
        .type = type,
        .timeout = own.timeout,
        .port = own.port,
        .resolved = resolved,
        .arg = arg,
    };

    assert(role_is(ROLE_WORKER) && resolved != NULL);
    if (own.owner != NULL && !SDK_VALID(own.owner)) {
        errno = ECANCELED;
        return NULL;
    }
    if (own.address != NULL) {
        query.address = &address;
        if (!address_from(&address, own.address) || !is_internet_address(&address)) {
            errno = EINVAL;
            return NULL;
        }
    }
    return worker_resolve(worker, own.owner, &query);
}

void fb_resolve_cancel(fb_resolution *resolution)
{
    assert(resolution != NULL);
    names_cancel(resolution);
}

/* ---- References and messages ---- */

fb_ref fb_ref_of(fb_conn *conn)
{
    return SDK_VALID(conn) ? messages_reference(sdk_worker_of(conn), conn) : 0;
}

fb_conn *fb_find(fb_worker *worker, fb_ref ref)
{
    assert(role_is(ROLE_WORKER));
    return messages_find_conn(worker, ref);
}

uint64_t fb_send_message(fb_conn *from, fb_ref to, const void *p, size_t n)
{
    assert(role_is(ROLE_WORKER));
    return SDK_VALID(from) ? messages_send(sdk_worker_of(from), from, to, p, n) : 0;
}

fb_ref fb_worker_id(const fb_worker *worker)
{
    return references_own_worker(worker_of(worker));
}

uint32_t fb_worker_number(const fb_worker *worker)
{
    return worker_of(worker)->heritage->index;
}

uint32_t fb_worker_count(const fb_worker *worker)
{
    const struct worker *process = worker_of(worker);

    return process->role == ROLE_SINGLE ? 1 : (uint32_t)process->cycle->core.worker_processes;
}

uint64_t fb_send_worker(fb_worker *from, fb_ref to, const void *p, size_t n)
{
    assert(role_is(ROLE_WORKER));
    return messages_send_from_worker(from, to, p, n);
}

uint64_t fb_send_all(fb_worker *from, const void *p, size_t n)
{
    assert(role_is(ROLE_WORKER));
    return messages_send_all(from, p, n);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on the worker that a callback runs in: its state, its clock, its timers, its
 * random numbers and its threads. Only the worker's own loop makes them. */
#include "process/role.h"
#include "sdk/handle.h"
#include "worker/threads.h"

#include <assert.h>

fb_worker *fb_worker_of(const fb_conn *conn)
{
    if (unlikely(conn->net == NULL)) /* a child of fork() */
        os_wiped_end();
    return sdk_protocol_of(conn);
}

inline void *fb_worker_state(const fb_conn *conn)
{
    return SDK_VALID(conn) ? sdk_protocol_of(conn)->state : NULL;
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
    return threads_run(worker, pool != NULL ? pool : first, work, done, job, n);
}

int fb_post(
    fb_worker *worker, void (*run)(fb_worker *worker, void *work), const void *work, size_t n)
{
    assert(role_is(ROLE_WORKER));
    return worker_protocol_post(worker, run, work, n);
}

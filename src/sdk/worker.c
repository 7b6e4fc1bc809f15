/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on the worker that a callback runs in: its state, its clock, its random numbers
 * and its threads. Only the worker's own loop makes them. */
#include "process/role.h"
#include "sdk/handle.h"
#include "worker/posts.h"
#include "worker/threads.h"

#include <assert.h>

fb_worker *fb_worker_of(const fb_conn *conn)
{
    if (unlikely(conn->net == NULL)) /* a child of fork() */
        wiped_end();
    return sdk_worker_of(conn);
}

void *fb_worker_state(const fb_conn *conn)
{
    return SDK_VALID(conn) ? sdk_protocol_of(conn)->state : NULL;
}

int64_t fb_wall_ms(const fb_worker *worker)
{
    return worker->stream.net.loop.clock.wall_ms;
}

uint64_t fb_mono_ms(const fb_worker *worker)
{
    return worker->stream.net.loop.clock.mono_ms;
}

void fb_random(fb_worker *worker, void *p, size_t n)
{
    assert(worker->random != NULL);
    worker->random(worker, p, n);
}

int fb_run(fb_worker *worker, void (*work)(void *job), void (*done)(fb_worker *worker, void *job),
    const void *job, size_t n)
{
    worker_check_fork(worker);
    assert(role_is(ROLE_WORKER));
    return threads_run(worker, &worker->cycle->core.pool, work, done, job, n);
}

int fb_run_in(fb_worker *worker, const fb_pool *pool, void (*work)(void *job),
    void (*done)(fb_worker *worker, void *job), const void *job, size_t n)
{
    worker_check_fork(worker);
    assert(role_is(ROLE_WORKER));
    return threads_run(worker, pool != NULL ? pool : &worker->cycle->core.pool, work, done, job, n);
}

int fb_post(
    fb_worker *worker, void (*run)(fb_worker *worker, void *work), const void *work, size_t n)
{
    worker_check_fork(worker);
    assert(role_is(ROLE_WORKER));
    return posts_add(worker, run, work, n);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The phases of a worker's record and the deadlines that go with them. The master kills a worker that
 * does not come as far as it must in time; it never waits for one. */
#include "pool/pool.h"

#include "base/compiler.h"
#include "process/role.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* The next attempt to fork after one that has failed. */
#define FORK_AGAIN_MS 1000

void pool_worker_set_phase(struct pool_worker *worker, enum pool_worker_phase phase)
{
    static const unsigned legal[] = {
        [POOL_WORKER_EMPTY] = 1u << POOL_WORKER_STARTING,
        [POOL_WORKER_STARTING] = 1u << POOL_WORKER_EMPTY | 1u << POOL_WORKER_READY,
        [POOL_WORKER_READY] =
            1u << POOL_WORKER_EMPTY | 1u << POOL_WORKER_ACCEPTING | 1u << POOL_WORKER_RELEASED,
        [POOL_WORKER_ACCEPTING] = 1u << POOL_WORKER_EMPTY | 1u << POOL_WORKER_RELEASED,
        [POOL_WORKER_RELEASED] = 1u << POOL_WORKER_EMPTY,
    };

    assert(role_is(FB_ROLE_MASTER));
    assert((legal[worker->phase] >> phase & 1) != 0);
    if (worker->phase == POOL_WORKER_EMPTY)
        worker->generation->process_n++;
    if (phase == POOL_WORKER_EMPTY)
        worker->generation->process_n--;
    worker->phase = phase;
}

/* A worker may hang where it listens to no other signal. */
static void kill_worker(struct pool_worker *worker)
{
    struct generation *generation = worker->generation;
    struct fb_log *log = generation->pool->log;

    worker->deadline_passed = true;
    if (generation->phase != GENERATION_CLOSING && !worker->watch.stuck) {
        worker->late = true;
        fb_log(log, FB_ALERT, 0,
            "worker process %d was not ready within worker_start_timeout (%" PRId64
            " ms), it is killed",
            (int)worker->pid, generation->cycle->core.worker_start_timeout);
    }
    if (kill(worker->pid, SIGKILL) == -1 && errno != ESRCH)
        fb_log(log, FB_ALERT, errno, "kill(%d, %d) failed", (int)worker->pid, SIGKILL);
}

static void abort_start(struct pool_worker *worker)
{
    char why[96];

    snprintf(why, sizeof(why),
        "worker process %d was not ready within worker_start_timeout (%" PRId64 " ms)",
        (int)worker->pid, worker->generation->cycle->core.worker_start_timeout);
    generation_abort(worker->generation, why);
}

static void deadline_expired(struct fb_loop *loop, struct fb_timer *timer)
{
    struct pool_worker *worker = fb_container(timer, struct pool_worker, deadline);

    (void)loop;
    assert(worker->pid > 0);
    if (worker->generation->phase == GENERATION_STARTING)
        abort_start(worker);
    else
        kill_worker(worker);
}

static void respawn_expired(struct fb_loop *loop, struct fb_timer *timer)
{
    struct pool_worker *worker = fb_container(timer, struct pool_worker, respawn);

    (void)loop;
    if (pool_spawn(worker) == -1)
        pool_worker_respawn_in(worker, FORK_AGAIN_MS);
}

void pool_worker_init(struct pool_worker *worker, struct generation *generation, unsigned index)
{
    *worker = (struct pool_worker) {
        .generation = generation,
        .index = index,
        .channel = -1,
        .inbox = -1,
        .respawn = { .expired = respawn_expired },
        .deadline = { .expired = deadline_expired },
    };
}

void pool_worker_respawn_in(struct pool_worker *worker, uint64_t ms)
{
    assert(worker->phase == POOL_WORKER_EMPTY);
    assert(!generation_is_ending(worker->generation));
    timers_arm(worker->generation->pool->timers, &worker->respawn, ms);
}

void pool_worker_expect(struct pool_worker *worker)
{
    struct generation *generation = worker->generation;
    int64_t limit = generation->cycle->core.worker_start_timeout;

    if (generation->phase == GENERATION_CLOSING) /* closing has a deadline of its own */
        return;
    timers_disarm(generation->pool->timers, &worker->deadline);
    if (limit > 0)
        timers_arm(generation->pool->timers, &worker->deadline, (uint64_t)limit);
}

void pool_worker_clear(struct pool_worker *worker)
{
    assert(worker->phase != POOL_WORKER_EMPTY);
    assert(worker->channel != -1);
    close(worker->channel);
    if (worker->inbox != -1)
        close(worker->inbox);
    worker->channel = worker->inbox = -1;
    worker->pid = 0;
    worker->deadline_passed = false;
    timers_disarm(worker->generation->pool->timers, &worker->deadline);
    worker->watch = (struct pool_watch) { .repeats = 0 };
    pool_worker_set_phase(worker, POOL_WORKER_EMPTY);
}

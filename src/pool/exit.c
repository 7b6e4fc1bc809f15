/* SPDX-License-Identifier: BSD-2-Clause */
/* Exits of workers. What a dead worker held is given back before its pid is free to be used again. A
 * worker is replaced unless its generation ends: at once, or after a wait that grows with each early
 * death by a crash. SIGKILL and exit code 0 never count as a crash. */
#include "pool/pool.h"

#include "process/role.h"

#include <assert.h>
#include <inttypes.h>
#include <sys/wait.h>

#define RESPAWN_MIN_MS 100
#define RESPAWN_MAX_MS 30000
/* A worker that has run longer has not died early. */
#define EARLY_MS 1000

static struct pool_worker *find_worker(const struct pool *pool, pid_t pid)
{
    struct pool_worker *worker;

    assert(pid > 0);
    POOL_FOREACH_WORKER (worker, pool)
        if (worker->pid == pid)
            return worker;
    return NULL;
}

static void log_exit(struct log *log, pid_t pid, int status)
{
    if (WIFSIGNALED(status))
        log_write(log, LEVEL_ALERT, 0, "worker process %d exited on signal %d%s", (int)pid,
            WTERMSIG(status), WCOREDUMP(status) ? " (core dumped)" : "");
    else
        log_write(log, LEVEL_NOTICE, 0, "worker process %d exited with code %d", (int)pid,
            WEXITSTATUS(status));
}

static void replace_crashed(struct pool_worker *worker)
{
    uint64_t wait = RESPAWN_MIN_MS;

    for (unsigned i = 0; i < worker->failures && wait < RESPAWN_MAX_MS; i++)
        wait *= 2;
    if (wait > RESPAWN_MAX_MS)
        wait = RESPAWN_MAX_MS;
    worker->failures++;
    log_write(worker->generation->pool->log, LEVEL_ALERT, 0,
        "a worker process died at once for the %u. time, the next starts in %" PRIu64 " ms",
        worker->failures, wait);
    pool_worker_respawn_in(worker, wait);
}

/* Replaces the worker, or takes the generation back that has not begun to serve. */
static void handle_exit(struct pool_worker *worker, int status)
{
    struct generation *generation = worker->generation;
    struct pool *pool = generation->pool;
    bool was_ready = worker->phase >= POOL_WORKER_READY;
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !worker->late;
    bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    bool early = !was_ready || worker->late || pool->clock->mono_ms - worker->started_ms < EARLY_MS;

    pool_tell_gone(pool, worker);
    pool_worker_clear(worker);
    if (pool_generation_is_ending(generation) || pool->ending)
        return;
    if (generation->phase == GENERATION_STARTING && !killed) {
        generation_abort(generation, "a worker process could not start");
        return;
    }
    if (early && !killed && !clean) {
        replace_crashed(worker);
        return;
    }
    worker->failures = 0;
    pool_worker_respawn_in(worker, 0);
}

/* Gives back what the dead worker has held, and keeps what it has counted. It wrote only to the zones
 * of its own configuration, but their memory may be another one's by now. */
static void release_slot(struct pool *pool, const struct pool_worker *worker)
{
    struct generation *generation;

    TAILQ_FOREACH (generation, &pool->generations, link)
        zones_slot_released(&generation->cycle->zones, worker->slot.slot);
    if (slot_release(pool->shared, worker->slot))
        log_write(pool->log, LEVEL_NOTICE, 0,
            "the accept mutex was taken back from worker process %d", (int)worker->pid);
}

void pool_reap(struct pool *pool)
{
    siginfo_t info = { .si_pid = 0 };

    assert(role_is(ROLE_MASTER));
    /* a look first: what the worker held is given back while its pid cannot be used again */
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
        struct pool_worker *worker = find_worker(pool, info.si_pid);
        pid_t pid = info.si_pid;
        int status;

        if (worker != NULL)
            release_slot(pool, worker);
        info.si_pid = 0;
        if (waitpid(pid, &status, 0) != pid)
            continue;
        if (worker == NULL) {
            pool->ops->reaped(pool->host, pid, status);
            continue;
        }
        log_exit(pool->log, pid, status);
        handle_exit(worker, status);
        pool_rescan(pool, NULL);
    }
    pool_sweep(pool);
}

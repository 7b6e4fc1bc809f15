/* SPDX-License-Identifier: BSD-2-Clause */
/* Exits of workers. What a dead worker held is given back before its pid is free to be used
 * again. A worker is replaced unless its generation ends: at once, or after a wait that grows
 * with each early death by a crash. An end that was asked for never counts as a crash, nor does
 * SIGKILL, unless the master sent it to a worker that was late. */
#include "pool/death.h"

#include "process/role.h"

#include <assert.h>
#include <inttypes.h>
#include <sys/wait.h>

#define RESPAWN_MIN_MS 100
#define RESPAWN_MAX_MS 30000
/* A worker that has run longer has not died early. */
#define EARLY_MS 1000

static void replace_crashed(struct pool_worker *worker)
{
    uint64_t wait = RESPAWN_MIN_MS;

    for (unsigned i = 0; i < worker->failures && wait < RESPAWN_MAX_MS; i++)
        wait *= 2;
    if (wait > RESPAWN_MAX_MS)
        wait = RESPAWN_MAX_MS;
    worker->failures++;
    log_quota_write(&worker->lines, LEVEL_ALERT, 0,
        "a worker process died at once (%u in a row), the next starts in %" PRIu64 " ms",
        worker->failures, wait);
    pool_worker_respawn_in(worker, wait);
}

/* Whether a death that comes early delays the next start. SIGKILL is somebody's decision, if not
 * ours about a worker that was late, and so is an exit code 0 that was asked for. */
static bool is_crash(enum pool_death cause, int status)
{
    switch ((unsigned)cause) {
    case POOL_KILL_NONE:
    case POOL_KILL_DRAIN_LATE:
    case POOL_KILL_CLOSE_LATE:
        return false;
    case POOL_DEATH_SIGNAL:
        return WTERMSIG(status) != SIGKILL;
    default:
        return true;
    }
}

/* Schedules a new process: at once, or later when this one has crashed early. */
static void replace_worker(struct pool_worker *worker, bool crashed, bool was_ready)
{
    uint64_t lived_ms = worker->generation->pool->clock->mono_ms - worker->started_ms;

    assert(worker->phase == POOL_WORKER_EMPTY);
    if (crashed && (!was_ready || lived_ms < EARLY_MS)) {
        replace_crashed(worker);
        return;
    }
    worker->failures = 0;
    pool_worker_respawn_in(worker, 0);
}

/* Replaces the worker whose process has gone, unless its generation ends: that is destroyed with
 * its last worker, and taken back when it has not begun to serve. The record may be gone then. */
static void follow_death(struct pool_worker *worker, bool crashed, bool was_ready, bool by_others)
{
    struct generation *generation = worker->generation;
    struct pool *pool = generation->pool;

    if (generation->phase >= GENERATION_REPLACED || pool->ending) {
        if (generation->process_n == 0 && generation != pool->serving)
            pool_destroy_generation(generation);
    } else if (generation->phase == GENERATION_STARTING && !by_others) {
        generation_abort(generation, "a worker process could not start");
    } else {
        replace_worker(worker, crashed, was_ready);
    }
}

/* Logs the exit, and gives up what the master has of the process. */
static void handle_exit(struct pool_worker *worker, int status, const struct death_words *words)
{
    enum pool_death cause = death_log(worker, status, words);
    bool late = worker->killed == POOL_KILL_START_LATE;
    bool was_ready = worker->phase >= POOL_WORKER_READY && !late;
    bool by_others =
        WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && worker->killed == POOL_KILL_NONE;

    if (worker->known)
        pool_outbox_note_gone(worker);
    /* the kernel may have woken it alone for a client that waits */
    pool_rescan(worker->generation->pool, NULL);
    pool_worker_set_phase(worker, POOL_WORKER_EMPTY);
    follow_death(worker, is_crash(cause, status), was_ready, by_others);
}

struct pool_worker *pool_find_worker(const struct pool *pool, pid_t pid)
{
    struct generation *generation;
    struct pool_worker *worker;

    assert(pid > 0);
    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_WORKER (worker, generation)
            if (worker->pid == pid)
                return worker;
    return NULL;
}

/* Gives back what a worker has held whose process has exited, keeps what it has counted, and reads
 * its last words. */
static void release_worker(struct pool *pool, struct pool_worker *worker, struct death_words *words)
{
    struct generation *generation;

    death_read(worker, words);
    /* the process wrote only to the zones of its own configuration, but their memory may be
     * another one's by now */
    TAILQ_FOREACH (generation, &pool->generations, link)
        zones_slot_released(&generation->cycle->zones, worker->slot);
    if (slot_release(pool->shared, worker->slot))
        log_quota_write(&worker->lines, LEVEL_NOTICE, 0,
            "the accept mutex was taken back from worker process %d", (int)worker->pid);
}

void pool_reap(struct pool *pool)
{
    siginfo_t info = { .si_pid = 0 };

    assert(role_is(ROLE_MASTER));
    /* a look first: what the worker held is given back while its pid cannot be used again */
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
        pid_t pid = info.si_pid;
        struct pool_worker *worker = pool_find_worker(pool, pid);
        struct death_words words;
        int status;

        info.si_pid = 0;
        pool->ops->exited(pool->host);
        if (worker != NULL)
            release_worker(pool, worker, &words);
        if (waitpid(pid, &status, 0) != pid)
            continue;
        if (worker != NULL)
            handle_exit(worker, status, &words);
        else
            pool->ops->reaped(pool->host, pid, status);
    }
}

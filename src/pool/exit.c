/* SPDX-License-Identifier: BSD-2-Clause */
/* Exits of workers. Whatever a dead worker held is given back before its pid can be reused. A
 * worker is replaced unless its generation ends: at once, or after a wait that grows with each
 * early crash, which a requested end is not. When every worker has crashed on probation the
 * configuration before starts again, without a probation. */
#include "pool/exit.h"

#include "base/compiler.h"
#include "configuration/listeners.h"
#include "os/process.h"
#include "os/sockets.h"
#include "pool/generation.h"
#include "pool/listeners.h"
#include "pool/outbox.h"
#include "pool/transaction.h"
#include "pool/worker.h"
#include "process/process_ops.h"
#include "process/role.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>

/* A crash delays the next start if it comes early. SIGKILL is an operator's decision, if not the
 * master's about a worker that was late, and so is an exit code 0 that was asked for. */
const struct pool_death_row pool_deaths[POOL_DEATHS] = {
    [POOL_KILL_START_LATE] = { "start_timeout", true,
        "it was not ready within worker_start_timeout" },
    [POOL_KILL_STUCK] = { "watchdog", true, "it did not leave this place (worker_watchdog)" },
    [POOL_KILL_DRAIN_LATE] = { "shutdown_timeout", false,
        "it had not ended 1 s after worker_shutdown_timeout" },
    [POOL_KILL_CLOSE_LATE] = { "stop_timeout", false, "it had not ended 2 s after it was told to" },
    [POOL_KILL_CHANNEL_LOST] = { "channel_lost", true,
        "it had closed the channel to the master, and not ended within 1 s" },
    [POOL_KILL_CHANNEL] = { "channel_rules", true,
        "it had broken a rule of the channel to the master" },
    [POOL_DEATH_SIGNAL] = { "signal", true, NULL },
    [POOL_DEATH_EXIT] = { "exit", true, NULL },
    [POOL_DEATH_WAIT] = { "wait_failed", true, NULL },
    [POOL_DEATH_START] = { "start_failed", true, NULL },
};

#define ORPHANS_MS 100 /* poll interval for exits of orphans */
#define RESPAWN_MIN_MS 100
#define RESPAWN_MAX_MS 30000
/* Lifetime of an early death, at most. */
#define EARLY_MS 1000

static void replace_crashed(struct pool_worker *worker)
{
    uint64_t wait = worker->failures < 16 ? RESPAWN_MIN_MS << worker->failures : RESPAWN_MAX_MS;

    if (wait > RESPAWN_MAX_MS)
        wait = RESPAWN_MAX_MS;
    worker->failures++;
    log_quota_write(&worker->lines, LEVEL_ALERT, 0,
        "a %s died at once (%u in a row), the next starts in %" PRIu64 " ms",
        pool_worker_title(worker), worker->failures, wait);
    pool_worker_respawn_in(worker, wait);
}

/* Lets the configuration before start again. Until then nothing more is lost: the predecessor of
 * a generation that never served still accepts, and drains only for addresses to be bound again. */
static void go_back(struct generation *failed)
{
    struct pool *pool = failed->pool;
    struct pool_worker *worker;

    log_event(pool->log, "generation_goes_back", LEVEL_EMERG, 0,
        "every worker process of generation %u has crashed within %d ms of its commit, the "
        "configuration of generation %u is started again",
        failed->number, POOL_PROBATION_MS, pool->probation.before->number);
    timers_disarm(pool->timers, &pool->probation.due);
    pool->probation.goes_back = true;
    if (failed == pool->starting) {
        generation_set_phase(failed, GENERATION_SERVING);
        pool->serving = failed;
        pool->starting = NULL;
        /* the logs of the generation before may be closed soon */
        logs_put_in_force(&failed->cycle->core, pool->log, &pool->log_limit);
    }
    /* crashing workers get no clients, unless no workers will replace them */
    GENERATION_FOREACH_WORKER (worker, failed)
        if (worker->phase == POOL_WORKER_EMPTY)
            pool_worker_respawn_in(worker, POOL_PROBATION_MS);
    if (pool->probation.before->phase == GENERATION_REPLACED && pool_probation_must_bind(pool))
        generation_drain(pool->probation.before);
    pool->ops->goes_back(pool->host);
}

static void note_crash(struct pool_worker *worker)
{
    struct generation *generation = worker->generation;
    const struct pool *pool = generation->pool;
    const struct pool_worker *other;

    assert(generation->phase == GENERATION_COMMITTED || generation->phase == GENERATION_SERVING);
    if (worker->task != TASK_SERVE)
        return;
    worker->crashed = true;
    if (pool->probation.before == NULL)
        return;
    GENERATION_FOREACH_SERVING (other, generation)
        if (!other->crashed)
            return;
    if (!pool->probation.goes_back)
        go_back(generation);
    else if (generation == pool->starting) /* no other configuration is left */
        transaction_serve(generation);
}

/* Replaces a dead worker, or ends or takes back its generation. The record may be freed. */
static void follow_death(struct pool_worker *worker, bool crashed, bool early, bool by_others)
{
    struct generation *generation = worker->generation;
    struct pool *pool = generation->pool;

    assert(worker->phase == POOL_WORKER_EMPTY);
    if (generation->phase >= GENERATION_REPLACED || pool->ending) {
        if (generation->process_n == 0 && generation != pool->serving &&
            generation != pool->probation.before)
            generation_destroy(generation);
    } else if (generation->phase == GENERATION_STARTING && !by_others) {
        transaction_abort(generation, "a worker process could not start");
    } else {
        if (crashed && early) {
            replace_crashed(worker);
        } else {
            worker->failures = 0;
            pool_worker_respawn_in(worker, 0);
        }
        if (crashed)
            note_crash(worker);
        pool_backoff_note(generation);
    }
}

/* Does the rest for an ended worker that is not our child. */
static void follow_orphan(struct pool_worker *worker)
{
    log_quota_event(&worker->lines, "worker_ended", LEVEL_NOTICE, 0,
        "%s %d has ended, the exit code is known to the parent alone", pool_worker_title(worker),
        (int)worker->pid);
    if (worker->known)
        pool_outbox_note_gone(worker);
    pool_worker_set_phase(worker, POOL_WORKER_EMPTY);
    follow_death(worker, false, false, true);
}

/* Gives back the resources of an exited worker, reaps it, and logs and counts the exit. */
static void bury_worker(struct pool *pool, struct pool_worker *worker)
{
    const struct cycle *cycle = worker->generation->cycle;
    uint64_t lived_ms = pool->clock->mono_ms - worker->started_ms;
    bool early = worker->phase < POOL_WORKER_READY || worker->killed == POOL_KILL_START_LATE ||
                 lived_ms < EARLY_MS;
    struct generation *generation;
    struct death_words words;
    struct death death;
    enum pool_death cause;
    bool by_others;
    int status;

    death_read(pool->shared, worker->slot, cycle->events.worker_connections, &words);
    /* zones of several configurations may share memory */
    TAILQ_FOREACH (generation, &pool->generations, link)
        zones_slot_released(&generation->cycle->zones, worker->slot);
    if (slot_release(pool->shared, worker->slot))
        log_quota_write(&worker->lines, LEVEL_NOTICE, 0,
            "the accept mutex was taken back from worker process %d", (int)worker->pid);
    if (worker->phase >= POOL_WORKER_ACCEPTING) /* a client may have controlled the worker */
        pool_restore_listeners(pool);
    else
        pool_look_at_listeners(pool);
    if (worker->handle != -1) {
        follow_orphan(worker);
        return;
    }
    if (process_ops->reap(worker->pid, &status, true) != worker->pid)
        return;
    death_explain(&death, status, pool_deaths[worker->killed].killed_because,
        pool_worker_protocols(worker), &words);
    cause = (enum pool_death)(death.cause == DEATH_ASKED ? 0 : POOL_KILLS - 1 + death.cause);
    if (death.cause == DEATH_SIGNAL && worker->killed != POOL_KILL_NONE)
        cause = (enum pool_death)worker->killed;
    by_others = cause == POOL_DEATH_SIGNAL && WTERMSIG(status) == SIGKILL;
    pool->deaths[cause]++;
    logs_output_read(&worker->output, &worker->lines, worker->pid, true);
    log_quota_event(&worker->lines, death.cause == DEATH_ASKED ? "worker_ended" : "worker_died",
        death.level, death.error, "%s %d %s", pool_worker_title(worker), (int)worker->pid,
        death.text);
    if (worker->known)
        pool_outbox_note_gone(worker);
    pool_rescan(pool, NULL); /* the kernel may have woken only this worker for a client */
    pool_worker_set_phase(worker, POOL_WORKER_EMPTY);
    worker->generation->last_death = status;
    follow_death(worker, pool_deaths[cause].is_crash && !by_others, early, by_others);
}

void pool_reap(struct pool *pool)
{
    pid_t pid;

    assert(role_is(ROLE_MASTER));
    /* the pid stays in use until the reap, after all resources were given back */
    while ((pid = process_ops->find_exited()) != 0) {
        struct pool_worker *worker = pool_find_worker(pool, pid);

        pool->ops->exited(pool->host, worker != NULL ? 0 : pid);
        if (worker != NULL)
            bury_worker(pool, worker);
    }
}

/* Orphans: workers that an exiting master process has left to its child. The child has inherited
 * channels and shared memory, polls process handles for exits, and gets no exit codes. Only an
 * ending pool is left. */

/* Lets a forked child inherit the memory shared with workers, or no longer. */
static int set_inherited(struct pool *pool, bool inherited)
{
    struct generation *generation;
    int status = segment_set_inherited(&pool->shared->segment, inherited);

    TAILQ_FOREACH (generation, &pool->generations, link)
        if (zones_set_inherited(&generation->cycle->zones, inherited) == -1)
            status = -1;
    return status;
}

int pool_leave_begin(struct pool *pool)
{
    struct pool_worker *worker;

    assert(role_is(ROLE_MASTER));
    assert(pool->ending);
    POOL_FOREACH_WORKER (worker, pool) {
        if (worker->pid > 0 && worker->handle == -1)
            worker->handle = process_ops->handle_open(worker->pid);
        if (worker->pid > 0 && worker->handle == -1)
            return -1;
    }
    return set_inherited(pool, true);
}

void pool_leave_undo(struct pool *pool)
{
    struct pool_worker *worker;

    /* a worker with a handle is not waited for */
    POOL_FOREACH_WORKER (worker, pool)
        if (worker->handle != -1) {
            process_ops->handle_close(worker->handle);
            worker->handle = -1;
        }
    set_inherited(pool, false);
}

/* Buries ended orphans. A burial may free the generation: the search begins anew. */
static void look_at_orphans(struct loop *loop, struct timer *timer)
{
    struct pool *pool = container_of(timer, struct pool, orphans);
    struct pool_worker *worker, *ended;

    (void)loop;
    do {
        ended = NULL;
        POOL_FOREACH_WORKER (worker, pool)
            /* without a reap the pid stays, and only the channel is closed */
            if (ended == NULL && worker->pid != 0 && worker->handle != -1 &&
                (process_ops->handle_has_ended(worker->handle) ||
                    (!os_handle_is_exact && os_socket_is_closed(worker->channel.fd))))
                ended = worker;
        if (ended != NULL)
            bury_worker(pool, ended);
    } while (ended != NULL);
    timers_arm(pool->timers, timer, ORPHANS_MS);
}

int pool_take_over(struct pool *pool)
{
    struct pool_worker *worker;
    int status = 0;

    assert(pool->ending);
    POOL_FOREACH_WORKER (worker, pool)
        if (worker->pid > 0 && (process_ops->wakeup_add(worker->channel.fd) == -1 ||
                                   logs_output_take_over(&worker->output) == -1))
            status = -1;
    pool->orphans.expired = look_at_orphans;
    timers_arm(pool->timers, &pool->orphans, 0);
    return status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Forks workers. A child keeps the descriptors of its heritage, and closes the rest; memory of
 * the master stays copied on write until the exit. */
#include "pool/spawn.h"

#include "os/descriptor.h"
#include "pool/messages.h"
#include "pool/transaction.h"
#include "pool/worker.h"
#include "process/channel.h"
#include "process/heritage.h"
#include "process/logs.h"
#include "process/process_ops.h"
#include "process/role.h"
#include "sandbox/sandbox.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Ends the child. The configurations are destroyed, because the destructors of modules may want
 * to do something; all other memory goes with the process. */
static NORETURN void end_child(struct pool *pool, struct heritage *heritage, int status)
{
    struct generation *generation;

    TAILQ_FOREACH (generation, &pool->generations, link)
        cycle_destroy(&generation->cycle);
    descriptors_done(&heritage->descriptors);
    exit(status);
}

/* Maps the shared memory with the worker's permissions; no mapping of the master's was inherited.
 * -1 after an emerg line. */
static int enter_memory(struct pool *pool, struct generation *own, struct heritage *heritage)
{
    struct generation *generation;
    const char *failed = shared_enter(heritage->shared, heritage->slot);

    pool->log->pid = process_ops->self();
    if (heritage->diag == NULL && pool->log->diag != NULL)
        diag_destroy(&pool->log->diag); /* only a reload's workers add to the reload's reply */
    TAILQ_FOREACH (generation, &pool->generations, link)
        if (generation->cycle != own->cycle)
            zones_forget(&generation->cycle->zones);
    if (failed == NULL && heritage->task == TASK_ASK)
        return zones_enter_helper(&own->cycle->zones, pool->log);
    if (failed == NULL)
        return zones_enter(&own->cycle->zones, heritage->slot, pool->log);
    log_write(pool->log, LEVEL_EMERG, errno,
        "the shared memory could not be mapped in a worker: %s failed", failed);
    return -1;
}

/* Memory that a child is given. */
struct child {
    struct heritage heritage; /* the first, as PROCESS_WORKER promises */
    struct generation *generation;
    int output; /* a pipe for its standard error, or -1 */
};

static NORETURN void run_child(void *arg)
{
    struct child *child = arg;
    struct heritage *heritage = &child->heritage;
    struct generation *own = child->generation;
    struct pool *pool = own->pool;
    struct listener *listener;
    int status;

    role_set(ROLE_WORKER);
    if (enter_memory(pool, own, heritage) == -1)
        process_ops->exit(EXIT_FAILURE); /* before any destructor of a module */
    descriptors_close_others(&heritage->descriptors);
    if (heritage->task == TASK_ASK) {
        STAILQ_INIT(&own->cycle->stream.listeners.list); /* they are closed */
        sandbox_narrow(own->cycle);
    }
    STAILQ_FOREACH (listener, &own->cycle->stream.listeners.list, link)
        listener->kept_n = 0; /* only the master keeps spare sockets */
    pool->ops->in_child(pool->host, own->cycle);
    logs_separate(&own->cycle->core);
    logs_lead_output(&own->cycle->core, child->output);
    descriptor_close(child->output);
    process_ops->set_title(pool_worker_title(&own->workers[heritage->index]), "");
    status = worker_main(heritage, ROLE_WORKER);
    end_child(pool, heritage, status);
}

/* A helper has no place, and takes no clients. */
static uint32_t worker_place(const struct pool_worker *worker)
{
    return worker->task == TASK_ASK ? PLACE_NONE
                                    : slot_place(worker->generation->number, worker->index);
}

/* Opens the channel and forks the process. NULL, or the call that failed, with errno and without a
 * process. */
static const char *fork_worker(struct pool_worker *worker)
{
    struct generation *generation = worker->generation;
    struct pool *pool = generation->pool;
    struct child child = {
        .heritage = {
            .cycle = generation->cycle,
            .shared = pool->shared,
            .slot = worker->slot,
            .task = worker->task,
            .index = worker->index,
            .place = worker_place(worker),
            .bells = &generation->bells,
        },
        .generation = generation,
    };
    struct heritage *heritage = &child.heritage;
    const char *failed = NULL;
    pid_t pid = -1;
    int ends[2], error;

    if (channel_open(ends) == -1)
        return "socketpair";
    heritage->channel = ends[1];
    if (generation->phase == GENERATION_STARTING) {
        heritage->diag = pool->log->diag;
        heritage->diag_session = pool->log->diag_session;
    }
    heritage_add_descriptors(heritage, &generation->opened);
    failed = logs_output_open(&worker->output, &generation->cycle->core, &child.output);
    descriptors_add(&heritage->descriptors, child.output);
    if (failed == NULL && heritage->descriptors.failed)
        failed = "malloc";
    if (failed == NULL && process_ops->wakeup_add(ends[0]) == -1)
        failed = "fcntl";
    if (failed == NULL && (pid = process_ops->fork(PROCESS_WORKER, run_child, &child)) == -1)
        failed = "fork";
    error = errno;
    descriptors_done(&heritage->descriptors);
    descriptor_close(ends[1]);
    descriptor_close(child.output);
    if (failed != NULL) {
        logs_output_close(&worker->output, &worker->lines, 0);
        descriptor_close(ends[0]);
        errno = error;
        return failed;
    }
    channel_end_open(&worker->channel, ends[0], &pool_channel_ops, pool->timers);
    worker->pid = pid;
    return NULL;
}

int pool_spawn(struct pool_worker *worker)
{
    struct generation *generation = worker->generation;
    struct pool *pool = generation->pool;
    const char *failed;

    assert(role_is(ROLE_MASTER));
    assert(worker->phase == POOL_WORKER_EMPTY && worker->channel.fd == -1);
    assert(generation->phase < GENERATION_REPLACED && !pool->ending);
    timers_disarm(pool->timers, &worker->respawn);
    if (!slot_acquire(pool->shared, &worker->slot)) {
        log_quota_write(&worker->lines, LEVEL_ALERT, 0,
            "no more than %d worker processes can run at once", SLOT_MAX);
        return -1;
    }
    if (worker->task != TASK_ASK)
        slot_set_place(pool->shared, worker->slot, worker_place(worker));
    zones_slot_acquired(&generation->cycle->zones, worker->slot);
    failed = fork_worker(worker);
    if (failed != NULL) {
        log_quota_write(
            &worker->lines, LEVEL_ALERT, errno, "%s() failed while spawning a worker", failed);
        zones_slot_released(&generation->cycle->zones, worker->slot);
        slot_release(pool->shared, worker->slot);
        return -1;
    }
    worker_list_add(pool->list, worker->slot.slot, worker->pid);
    pool_worker_set_phase(worker, POOL_WORKER_STARTING);
    if (generation->crashing)
        pool_backoff_watch(generation);
    log_quota_write(&worker->lines, LEVEL_NOTICE, 0, "start %s %d", pool_worker_title(worker),
        (int)worker->pid);
    return 0;
}

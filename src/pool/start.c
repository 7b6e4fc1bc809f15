/* SPDX-License-Identifier: BSD-2-Clause */
/* The start of a generation: listeners, zones, record, forks of workers; and the expiry of
 * workers' deadlines: before the commit a late worker ends the start, afterwards it is killed. A
 * former configuration starts again as a new generation, because draining workers cannot serve
 * again. A child keeps the descriptors of its heritage; memory of the master stays copied on
 * write. */
#include "pool/start.h"

#include "base/compiler.h"
#include "channel/channel.h"
#include "configuration/configuration.h"
#include "configuration/listeners.h"
#include "configuration/zones.h"
#include "keeper/keeper.h"
#include "keeper/pair_store.h"
#include "keeper/ticket_memory.h"
#include "os/descriptor.h"
#include "pool/generation.h"
#include "pool/keepers.h"
#include "pool/listeners.h"
#include "pool/messages.h"
#include "pool/transaction.h"
#include "pool/worker.h"
#include "process/process_ops.h"
#include "process/role.h"
#include "process/signals.h"
#include "sandbox/sandbox.h"
#include "tls/cipher.h"
#include "worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Interval between attempts to fork. */
#define FORK_AGAIN_MS 1000

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

/* Maps the keys of tickets in a keeper; the descriptor is closed next. -1 after an emerg line. */
static int enter_tickets(const struct pool *pool, struct heritage *heritage)
{
    assert(heritage->task == TASK_KEEP && pool->tickets != -1);
    heritage->tickets = ticket_memory_map(pool->tickets);
    if (heritage->tickets != NULL)
        return 0;
    log_write(
        pool->log, LEVEL_EMERG, errno, "the keys of tickets could not be mapped: mmap() failed");
    return -1;
}

/* Maps the pairs of the keeper's generation, and, for the keeper that writes them, those of the
 * generation before. Without either a keeper reads files itself. */
static void enter_pairs(const struct generation *own, struct heritage *heritage)
{
    const struct pool *pool = own->pool;
    const struct generation *former = pool->serving != own ? pool->serving : NULL;

    if (own->pairs != -1 && pair_memory_map(&heritage->pairs, own->pairs) == -1)
        log_write(pool->log, LEVEL_ALERT, errno, "certificates cannot be shared: mmap() failed");
    if (former != NULL && former->pairs != -1 && heritage->index == own->serve_n)
        pair_memory_map(&heritage->former_pairs, former->pairs);
}

/* Maps the shared memory with the worker's permissions; -1 after an emerg line. */
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
    if (failed == NULL && heritage->task == TASK_KEEP) {
        zones_forget(&own->cycle->zones);
        enter_pairs(own, heritage);
        return enter_tickets(pool, heritage);
    }
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
    if (heritage->task != TASK_SERVE) {
        STAILQ_INIT(&own->cycle->stream.listeners.list); /* they are closed */
        (heritage->task == TASK_KEEP ? sandbox_narrow_keeper : sandbox_narrow)(own->cycle);
    }
    STAILQ_FOREACH (listener, &own->cycle->stream.listeners.list, link)
        listener->kept_n = 0; /* only the master keeps spare sockets */
    pool->ops->in_child(pool->host, own->cycle);
    logs_separate(&own->cycle->core, heritage->task == TASK_SERVE);
    logs_lead_output(&own->cycle->core, child->output);
    descriptor_close(child->output);
    process_ops->set_title(pool_worker_title(&own->workers[heritage->index]), "");
    status = heritage->task == TASK_KEEP ? keeper_main(heritage, heritage->cycle->engine)
                                         : worker_main(heritage, ROLE_WORKER);
    end_child(pool, heritage, status);
}

/* Opens the channel and forks; NULL, or the call that failed, with errno. */
static const char *fork_worker(struct pool_worker *worker, uint32_t place)
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
            .place = place,
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

/* Forks a process; -1 after an alert line. */
static int spawn_worker(struct pool_worker *worker)
{
    struct generation *generation = worker->generation;
    struct pool *pool = generation->pool;
    uint32_t place = PLACE_NONE; /* a helper has none, and takes no clients */
    const char *failed;

    assert(role_is(ROLE_MASTER));
    assert(worker->phase == POOL_WORKER_EMPTY && worker->channel.fd == -1);
    assert(generation->phase < GENERATION_REPLACED && !pool->ending);
    assert(!timer_is_set(&worker->respawn));
    if (!slot_acquire(pool->shared, &worker->slot)) {
        log_quota_write(&worker->lines, LEVEL_ALERT, 0,
            "no more than %d worker processes can run at once", SLOT_MAX);
        return -1;
    }
    if (worker->task == TASK_SERVE) {
        place = slot_place(generation->number, worker->index);
        slot_set_place(pool->shared, worker->slot, place);
    }
    zones_slot_acquired(&generation->cycle->zones, worker->slot);
    failed = fork_worker(worker, place);
    if (failed != NULL) {
        log_quota_write(
            &worker->lines, LEVEL_ALERT, errno, "%s() failed while spawning a worker", failed);
        zones_slot_released(&generation->cycle->zones, worker->slot);
        slot_release(pool->shared, worker->slot);
        return -1;
    }
    worker_list_add(pool->list, worker->slot.slot, worker->pid);
    pool_worker_set_phase(worker, POOL_WORKER_STARTING);
    pool_keepers_link(worker);
    if (generation->crashing)
        pool_backoff_watch(generation);
    log_quota_event(&worker->lines, "worker_started", LEVEL_NOTICE, 0, "start %s %d",
        pool_worker_title(worker), (int)worker->pid);
    return 0;
}

static void worker_deadline_expired(struct loop *loop, struct timer *timer)
{
    struct pool_worker *worker = container_of(timer, struct pool_worker, deadline);
    struct generation *generation = worker->generation;
    enum pool_kill due = worker->due;
    char late[96];

    (void)loop;
    assert(worker->pid > 1 && due != POOL_KILL_NONE);
    worker->due = POOL_KILL_NONE;
    snprintf(late, sizeof(late), "%s %d was not ready within worker_start_timeout (%" PRId64 " ms)",
        pool_worker_title(worker), (int)worker->pid, generation->cycle->core.worker_start_timeout);
    if (generation->phase == GENERATION_STARTING && due == POOL_KILL_START_LATE) {
        transaction_abort(generation, late);
        return;
    }
    if (due == POOL_KILL_START_LATE)
        log_quota_write(&worker->lines, LEVEL_ALERT, 0, "%s, it is killed", late);
    if (worker->killed == POOL_KILL_NONE)
        worker->killed = due;
    /* other signals may be ignored */
    signals_send_held(worker->pid, worker->handle, SIGKILL, worker->generation->pool->log);
}

static void respawn_expired(struct loop *loop, struct timer *timer)
{
    struct pool_worker *worker = container_of(timer, struct pool_worker, respawn);

    (void)loop;
    if (spawn_worker(worker) == -1)
        pool_worker_respawn_in(worker, FORK_AGAIN_MS);
}

static struct generation *create_generation(
    struct pool *pool, struct cycle *cycle, struct descriptors *opened)
{
    unsigned serve_n = (unsigned)cycle->core.worker_processes;
    unsigned keeper_n = cycle->tls.n > 0 ? serve_n : 0;
    unsigned n = serve_n + keeper_n + (cycle->stream.addresses != NULL);
    struct generation *generation =
        calloc(1, sizeof(*generation) + n * sizeof(generation->workers[0]));

    assert(serve_n > 0);
    if (generation == NULL) {
        log_write(pool->log, LEVEL_EMERG, errno, "no memory for %u workers", n);
        return NULL;
    }
    generation->pool = pool;
    generation->phase = GENERATION_STARTING;
    generation->cycle = cycle;
    generation->opened = *opened;
    *opened = (struct descriptors) { .fds = NULL };
    if (pool->serving != NULL)
        heritage_keep_opened(&generation->opened, &pool->serving->opened, pool->serving->cycle);
    generation->number = ++pool->generation_n;
    bells_open(&generation->bells, serve_n);
    generation->since_ms = pool->clock->wall_ms;
    generation->release.expired = pool_wake_up;
    generation->watch.expired = pool_watchdog_expired;
    generation->worker_n = n;
    generation->serve_n = serve_n;
    generation->keeper_n = keeper_n;
    generation->pairs = keeper_n > 0 ? pair_memory_create(cycle->tls.pair_n) : -1;
    if (keeper_n > 0 && generation->pairs == -1)
        log_write(pool->log, LEVEL_ALERT, errno, "certificates cannot be shared by keepers");
    for (unsigned i = 0; i < n; i++) {
        generation->workers[i] = (struct pool_worker) {
            .generation = generation,
            .index = i,
            .task = i < serve_n              ? TASK_SERVE
                    : i < serve_n + keeper_n ? TASK_KEEP
                                             : TASK_ASK,
            .outbox = { .inbox = -1, .link = -1 },
            .handle = -1,
            .channel = { .fd = -1 },
            .output = { .fd = -1 },
            .inbox = -1,
            .broken_listener = -1,
            .respawn = { .expired = respawn_expired },
            .deadline = { .expired = worker_deadline_expired },
        };
        log_quota_init(&generation->workers[i].lines, pool->log, pool->timers,
            "worker %u of generation %u", i, generation->number);
    }
    TAILQ_INSERT_TAIL(&pool->generations, generation, link);
    event_log_note(pool->log->event_log, "generation_begins", "generation %u, worker processes: %u",
        generation->number, serve_n);
    pool_keepers_watch(generation);
    return generation;
}

static void start_watchdog(struct generation *generation)
{
    int64_t watchdog = generation->cycle->core.worker_watchdog;

    if (watchdog > 0)
        timers_arm(generation->pool->timers, &generation->watch, (uint64_t)(watchdog + 1) / 2);
}

/* Forks the workers; -1: the generation was withdrawn. */
static int fork_workers(struct generation *generation)
{
    struct pool_worker *worker;

    generation->pool->starting = generation;
    if (generation->keeper_n > 0)
        ciphers_prepare();
    GENERATION_FOREACH_WORKER (worker, generation)
        if (spawn_worker(worker) == -1) {
            transaction_withdraw(generation, "a worker process could not be forked");
            return -1;
        }
    start_watchdog(generation);
    return 0;
}

/* Makes the memory of the keys of tickets, before the first keeper; -1 after an emerg line. */
static int prepare_tickets(struct pool *pool, const struct cycle *cycle)
{
    if (cycle->tls.n == 0 || pool->tickets != -1)
        return 0;
    pool->tickets = ticket_memory_create();
    if (pool->tickets != -1)
        return 0;
    log_write(pool->log, LEVEL_EMERG, errno, "no memory for the keys of tickets");
    return -1;
}

int pool_start_generation(struct pool *pool, struct cycle *cycle, struct descriptors *opened)
{
    const struct cycle *in_force = pool->serving != NULL ? pool->serving->cycle : NULL;
    const struct zones *zones = in_force != NULL ? &in_force->zones : pool->adopted_zones;
    unsigned slots = (unsigned)cycle->core.worker_processes;
    struct generation *generation = NULL;

    assert(role_is(ROLE_MASTER));
    assert(pool->starting == NULL && !pool->ending);
    pool_mend_listeners(pool); /* a broken listener could not be taken over */
    /* lost unix sockets stay without workers to drain the queues, or while another master process
     * has the paths */
    if (pool->serving != NULL)
        listeners_note_lost(pool->serving->cycle, pool->serving->phase == GENERATION_SERVING &&
                                                      !pool->ops->is_handed_over(pool->host, NULL));
    tls_profiles_load_kernel(&cycle->tls, pool->log);
    if (sandbox_prepare(cycle, pool->log) == 0 && prepare_tickets(pool, cycle) == 0 &&
        listeners_open(cycle, in_force, pool->adopted, slots, pool->log) == 0) {
        if (configuration_open_zones(cycle, zones, pool->log) == 0)
            generation = create_generation(pool, cycle, opened);
        /* held by the first generation, or given up */
        zones_close(pool->adopted_zones);
        if (generation == NULL)
            listeners_abandon(cycle, in_force, pool->adopted);
    }
    if (generation == NULL) {
        descriptors_done(opened);
        configuration_discard(&cycle, pool->log);
        return -1;
    }
    return fork_workers(generation);
}

/* Makes a generation of a former configuration, binding listeners on request; NULL after an emerg
 * line. */
static struct generation *create_again(const struct generation *before, bool bind)
{
    struct pool *pool = before->pool;
    const struct cycle *in_force = pool->serving->cycle;
    struct cycle *cycle = cycle_share(before->cycle);
    struct descriptors opened = { .fds = NULL };
    struct generation *generation = NULL;

    descriptors_add_all(&opened, &before->opened);
    if (!bind || listeners_open(cycle, in_force, pool->adopted,
                     (unsigned)cycle->core.worker_processes, pool->log) == 0) {
        generation = create_generation(pool, cycle, &opened);
        if (generation == NULL && bind)
            listeners_abandon(cycle, in_force, pool->adopted);
    }
    if (generation == NULL) {
        descriptors_done(&opened);
        configuration_discard(&cycle, pool->log);
    }
    return generation;
}

void pool_fall_back_advance(struct pool *pool)
{
    struct generation *generation;

    if (!pool_probation_awaits_start(pool) ||
        (pool_find_holder(pool) != NULL && pool_probation_must_bind(pool)))
        return;
    assert(pool->starting == NULL && !pool->ending && pool->probation.before != pool->serving);
    generation = create_again(pool->probation.before, true);
    if (generation == NULL || fork_workers(generation) == -1) {
        pool_probation_end(pool);
        transaction_failed(pool);
    }
}

void pool_revive(struct pool *pool)
{
    struct generation *before = pool->serving, *generation;
    struct pool_worker *worker;

    if (before == NULL || before->phase != GENERATION_DRAINING)
        return;
    if (pool->starting != NULL && pool->starting->phase == GENERATION_COMMITTED)
        return; /* the starting one has the listeners */
    generation = create_again(before, false);
    if (generation == NULL)
        return;
    log_event(pool->log, "generation_serves", LEVEL_NOTICE, 0,
        "generation %u serves with the configuration of generation %u, whose workers drain",
        generation->number, before->number);
    generation_set_phase(generation, GENERATION_COMMITTED); /* the listeners are open */
    generation_set_phase(generation, GENERATION_SERVING);
    pool->serving = generation;
    GENERATION_FOREACH_WORKER (worker, generation)
        pool_worker_respawn_in(worker, 0);
    start_watchdog(generation);
    if (before->process_n == 0 && before != pool->probation.before)
        generation_destroy(before);
    generation_bound(pool);
}

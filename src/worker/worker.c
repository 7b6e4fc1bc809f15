/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's life: sets everything up in the order that the confinement asks for, turns the loop
 * (turn.c), and takes everything down again. */
#include "worker/worker.h"

#include "backends/chain.h"
#include "backends/connect.h"
#include "backends/tries.h"
#include "configuration/logs.h"
#include "features/features.h"
#include "process/heritage.h"
#include "process/process_ops.h"
#include "process/role.h"
#include "sandbox/sandbox.h"
#include "session/stats.h"
#include "settings/calls.h"
#include "systemd/notify.h"
#include "upstream/queue.h"
#include "upstream/refresh.h"
#include "worker/accept.h"
#include "worker/messages.h"

#include <assert.h>
#include <bsd/stdlib.h>
#include <errno.h>
#include <forkbeard/watch.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* The exit code, as nginx's, after a failed start. */
#define EXIT_FATAL 2
/* The exit code after a failed wait for events. */
#define EXIT_LOST 3
#define LINGERING_TIMEOUT_MS 5000
/* Time of jobs beyond worker_shutdown_timeout. */
#define JOBS_MS 1000

/* Closes the sessions, and limits the time of jobs for a worker without a master. */
static void shutdown_expired(struct loop *loop, struct timer *timer)
{
    struct worker *worker = worker_of_loop(loop);
    unsigned jobs = jobs_busy(worker);

    assert(timer == &worker->shutdown && worker->phase == WORKER_DRAINING);
    if (!worker->shutdown_passed) {
        log_write(&worker->log, LEVEL_NOTICE, 0,
            "worker_shutdown_timeout has passed, %" PRIu32 " connections are closed",
            worker->stream.net.connection_n);
        net_fail_all(&worker->stream.net, FB_DRAINED);
        worker->shutdown_passed = true;
        timer_set(loop, timer, JOBS_MS);
    } else if (worker->channel == NULL && jobs > 0) {
        log_write(&worker->log, LEVEL_ALERT, 0,
            "%u jobs have not ended 1 s after worker_shutdown_timeout, the process ends", jobs);
        worker_set_phase(worker, WORKER_ENDING);
    }
}

static void random_worker_bytes(struct worker *worker, void *p, size_t n)
{
    (void)worker;
    arc4random_buf(p, n);
}

static bool worker_serves(const struct worker *worker)
{
    return worker->heritage->task != TASK_ASK;
}

static bool is_confined(const struct worker *worker)
{
    return worker->role == ROLE_WORKER && !worker->heritage->simulated;
}

static unsigned listener_slots(const struct worker *worker)
{
    const struct listener *listener;
    /* the channel, the bell, posts, messages, upstreams, reads of files, the engine of TLS, and
     * watches */
    unsigned n = 9 + FB_WATCHES_MAX + worker_names_slots(worker);

    STAILQ_FOREACH (listener, &worker->cycle->stream.listeners.list, link)
        n += listener->fd_n;
    return n;
}

static int init_stream(struct worker *worker, const struct heritage *heritage)
{
    const struct events_settings *events = &heritage->cycle->events;
    struct net_options options = {
        .connections_max = worker_serves(worker) ? (uint32_t)events->worker_connections : 1,
        .listeners = listener_slots(worker),
        .mechanism = events->mechanism,
        .mechanism_values = events->mechanism_values,
        .wait_mask = &signals_state->wait_mask,
        .log = &worker->log,
        .counters = &shared_slot(heritage->shared, heritage->slot)->counters,
        .heartbeat = &shared_slot(heritage->shared, heritage->slot)->heartbeat,
        .numbers = &heritage->shared->common->connection_numbers,
        .numbers_in_a_row = heritage->cycle->stream.variables->uses_number,
        .lingering_timeout = LINGERING_TIMEOUT_MS,
        .unfiltered = is_confined(worker) && heritage->cycle->filter == NULL,
        .memory = heritage->memory,
    };

    if (stream_init(&worker->stream, &options, heritage->shared, &backends_ops, events->debug,
            events->debug_n) == -1)
        return -1;
    signals_wake_by(worker->stream.net.loop.signal_fd);
    worker->stream.slot = heritage->slot;
    chain_init(&worker->stream, &heritage->cycle->stream, heritage->place >> PLACE_NUMBER_BITS);
    worker->stream.reclaims_idle = events->reclaim_idle != 0;
    return 0;
}

static uint32_t worker_random_below(struct upstreams *upstreams, uint32_t below)
{
    struct worker *worker = worker_of_loop(upstreams->loop);
    uint32_t n;

    worker->random(worker, &n, sizeof(n));
    return n % below;
}

static void told_upstreams(struct upstreams *upstreams)
{
    net_flush(net_of_loop(upstreams->loop));
}

/* Reports new addresses of names: to the master from a separate process. */
static void published_names(struct upstreams *upstreams)
{
    struct worker *worker = worker_of_loop(upstreams->loop);

    assert(worker->heritage->task != TASK_SERVE && upstreams->writer != NULL);
    if (worker_serves(worker))
        refresh_all(upstreams);
    else
        channel_end_send(&worker->to_master, MESSAGE_NAMES);
}

static int open_upstreams(struct worker *worker)
{
    struct net *net = &worker->stream.net;
    struct upstreams *upstreams = &worker->stream.upstreams;

    *upstreams = (struct upstreams) {
        .list = &worker->cycle->stream.upstreams,
        .loop = &net->loop,
        .log = &worker->log,
        .memory = net->memory,
        .id = worker->heritage->slot,
        .stats =
            worker->cycle->stream.tries != NULL ? zone_memory(worker->cycle->stream.tries) : NULL,
        .resume = tries_tell,
        .report = tries_report,
        .random = worker_random_below,
        .generation = worker->heritage->place >> PLACE_NUMBER_BITS,
        .names = worker->names,
        .system = &worker->cycle->stream.system,
        .resumed = told_upstreams,
        .addresses = worker->cycle->stream.addresses,
        .published = published_names,
    };
    if (worker_serves(worker) && (queue_open(upstreams) == -1 || upstreams_open(upstreams) == -1))
        return -1;
    return worker->heritage->task != TASK_SERVE ? upstreams_ask(upstreams) : 0;
}

static int start_service(struct worker *worker)
{
    session_stats_open(&worker->cycle->stream, worker->heritage->slot.slot);
    if (worker_protocols_start(worker) == -1 || messages_greet_all(worker) == -1)
        return -1;
    file_reads_open(worker);
    return 0;
}

int worker_init(struct worker *worker, const struct heritage *heritage, enum role role)
{
    struct cycle *cycle = heritage->cycle;
    struct loop *loop = &worker->stream.net.loop;
    int64_t resolution = cycle->core.timer_resolution;

    assert(role == ROLE_WORKER || role == ROLE_SINGLE);
    assert(heritage->slot.serial != 0 && cycle->events.worker_connections > 0);
    *worker = (struct worker) {
        .heritage = heritage, .cycle = cycle, .role = role, .to_master = { .fd = -1 }
    };
    heritage_open_log(heritage, &worker->log);
    worker->shutdown.expired = shutdown_expired;
    worker->random = heritage->random != NULL ? heritage->random : random_worker_bytes;
    if (is_confined(worker) && process_confine(cycle, heritage->index, &worker->log) == -1)
        return -1;
    if (role == ROLE_SINGLE)
        process_limit(cycle, &worker->log);
    /* a worker may lack a right that the master process has; the first says so for all */
    if (events_yield(&cycle->events) && heritage->index == 0)
        events_log(cycle, &worker->log);
    if (init_stream(worker, heritage) == -1)
        return -1;
    busy_poll_init(&worker->busy_poll, cycle->events.busy_poll);
    if (worker_serves(worker))
        settings_open_maps(&cycle->zones, heritage->slot);
    if ((worker_serves(worker) && worker_tls_open(worker) == -1) ||
        (worker_serves(worker) && features_open(&worker->stream, cycle, heritage->slot) == -1) ||
        accept_init(worker) == -1 || worker_open_channel(worker) == -1 ||
        worker_names_open(worker) == -1 || open_upstreams(worker) == -1 ||
        (worker_serves(worker) && start_service(worker) == -1) ||
        (resolution > 0 && loop_set_resolution(loop, (uint64_t)resolution) == -1) ||
        (is_confined(worker) && sandbox_enter(cycle, &worker->log) == -1) ||
        jobs_begin(worker) == -1) {
        worker_done(worker);
        return -1;
    }
    worker->log.diag = NULL;
    log_update(&worker->log);
    heartbeat_start(worker->stream.net.heartbeat, (uint64_t)cycle->events.stall_threshold * 1000);
    worker_set_phase(worker, WORKER_READY);
    return 0;
}

void worker_done(struct worker *worker)
{
    struct net *net = &worker->stream.net;
    struct timer *const timers[] = { &worker->shutdown, &worker->others, &worker->alive,
        &worker->log_due, &worker->log_repair, &worker->log_flush, &worker->stream.drain,
        &worker->stream.drop };

    assert(worker->phase != WORKER_DONE);
    if (worker->phase != WORKER_ENDING)
        worker_set_phase(worker, WORKER_ENDING);
    if (worker->accept.phase != ACCEPT_RELEASED)
        accept_release(worker);
    net->awaited = NULL;
    if (worker->names != NULL)
        names_end(worker->names);
    net_fail_all(net, FB_DRAINED);
    worker_protocols_stop(worker);
    worker->jobs_left = jobs_busy(worker) > 0;
    jobs_done(worker);
    names_destroy(&worker->names);
    file_reads_close(worker);
    messages_done(worker);
    session_lists_done(worker);
    for (size_t i = 0; i < countof(timers); i++)
        timer_del(&net->loop, timers[i]);
    channel_end_flush(&worker->to_master);
    channel_end_close(&worker->to_master);
    /* the kernel closes the channel, which tells the master about the process's end */
    if (worker->channel != NULL)
        source_detach(&net->loop, worker->channel);
    assert(net->connection_n == 0 && worker->messages == NULL && worker->threads == NULL);
    features_close(&worker->stream, worker->cycle);
    upstreams_close(&worker->stream.upstreams);
    queue_close(&worker->stream.upstreams);
    signals_wake_by(-1);
    worker_tls_close(worker);
    stream_done(&worker->stream);
    busy_poll_done(&worker->busy_poll);
    worker_set_phase(worker, WORKER_DONE);
}

/* A protocol has called pthread_exit(): the loop is gone, and threads might live on. */
static void end_worker_process(void *arg)
{
    struct worker *worker = arg;

    if (worker->heritage == NULL) /* in a child of fork() */
        os_wiped_end();
    if (worker->role == ROLE_SINGLE)
        log_write(&worker->log, LEVEL_ALERT, 0, "a protocol has called pthread_exit()");
    heartbeat_set_end(worker->stream.net.heartbeat, HEARTBEAT_THREAD_LEFT, 0);
    process_ops->exit(EXIT_FAILURE);
}

/* ---- Logs ---- */

/* Logs held-back lines, or ends the turn's wait for a repair. */
static void log_due(struct loop *loop, struct timer *timer)
{
    (void)timer;
    log_report_suppressed(&worker_of_loop(loop)->log, false);
}

static void log_flush_due(struct loop *loop, struct timer *timer)
{
    struct worker *worker = worker_of_loop(loop);

    (void)timer;
    logs_flush(&worker->cycle->core, &worker->log);
}

/* Reconnects broken logs, or has the master do so; sets the timers for held-back
 * lines, and for lines that wait. */
static void tend_log(struct worker *worker)
{
    struct core_settings *core = &worker->cycle->core;
    struct loop *loop = &worker->stream.net.loop;
    uint64_t now = loop->clock.mono_ms, due = worker->log_limit.report_ms;

    /* a line may break a second log, left to the timer */
    if (unlikely(worker->log.broken) && !timer_is_set(&worker->log_repair)) {
        worker->log.broken = false;
        if (worker->role == ROLE_SINGLE)
            logs_repair(core, &worker->log);
        for (unsigned i = 0; worker->role != ROLE_SINGLE && i < core_target_n(core); i++)
            if (logs_take_broken(core_target(core, i), &worker->log))
                channel_end_try(
                    &worker->to_master, &(struct channel_message) { MESSAGE_LOG_BROKEN, i, -1 });
        timer_set(loop, &worker->log_repair, LOGS_REPAIR_MS);
    }
    if (unlikely(worker->log.waiting) && !timer_is_set(&worker->log_flush))
        timer_set(loop, &worker->log_flush, LOGS_FLUSH_MS);
    worker->log.waiting = false;
    if (unlikely(due != 0) && !timer_is_set(&worker->log_due))
        timer_set(loop, &worker->log_due, due > now ? due - now : 1);
}

void worker_run(struct worker *worker)
{
    assert(worker->phase >= WORKER_READY && worker->phase < WORKER_DONE);
    for (;;) {
        if (unlikely(signals_pending()))
            worker_take_commands(worker);
        if (unlikely(worker->phase >= WORKER_DRAINING) && worker_has_ended(worker))
            return;
        if (unlikely(worker->log.broken || worker->log.waiting || worker->log_limit.report_ms != 0))
            tend_log(worker);
        worker_turn(worker);
    }
}

/* Serves; the exit code. */
static int serve_clients(struct worker *worker)
{
    const struct core_settings *core = &worker->cycle->core;
    struct net *net = &worker->stream.net;

    assert(worker->log.limit == NULL && core->log_burst >= 0);
    worker->log_due.expired = worker->log_repair.expired = log_due;
    worker->log_flush.expired = log_flush_due;
    if (core->log_burst > 0) {
        log_limit_init(&worker->log_limit, (uint32_t)core->log_burst, (uint64_t)core->log_interval);
        worker->log.limit = &worker->log_limit;
    }
    if (worker->role == ROLE_WORKER) {
        channel_end_send(&worker->to_master, MESSAGE_READY);
    } else {
        accept_open(worker);
        worker_notify_serving(worker);
    }
    worker_run(worker);
    if (worker->role == ROLE_SINGLE)
        notify_attend(NULL, NULL);
    if (net->loop.wait_error == 0) {
        log_write(&worker->log, LEVEL_NOTICE, 0, "exiting");
        return EXIT_SUCCESS;
    }
    heartbeat_set_end(net->heartbeat, HEARTBEAT_WAIT_FAILED, net->loop.wait_error);
    if (worker->role == ROLE_WORKER) /* descriptors may be closed, or reused */
        process_ops->exit(EXIT_LOST);
    return EXIT_FAILURE;
}

int worker_main(const struct heritage *heritage, enum role role)
{
    struct slot *slot = shared_slot(heritage->shared, heritage->slot);
    struct worker *worker = os_wiped_alloc(sizeof(*worker));
    struct log log;
    volatile int status = EXIT_FATAL; /* for pthread_cleanup_push() */

    heritage_open_log(heritage, &log);
    if (worker == NULL)
        log_write(&log, LEVEL_EMERG, errno, "no memory for the worker");
    role_set(role);
    assert(!role_is(ROLE_MASTER) || role == ROLE_SINGLE);
    signals_install(role);
    pthread_cleanup_push(end_worker_process, worker);
    if (worker != NULL && worker_init(worker, heritage, role) == 0) {
        status = serve_clients(worker);
        worker_done(worker);
        log_report_suppressed(&worker->log, true);
        logs_drop_waiting(&heritage->cycle->core, &worker->log);
        assert(worker->phase == WORKER_DONE);
    }
    pthread_cleanup_pop(0);
    heartbeat_set_end(&slot->heartbeat, HEARTBEAT_RETURNED, 0);
    if (worker != NULL && worker->jobs_left &&
        role == ROLE_WORKER) /* jobs of modules, which stay loaded */
        process_ops->exit(status);
    os_wiped_free(worker, sizeof(*worker));
    return status;
}

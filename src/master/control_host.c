/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of control/: the status, commands, and the outcome of reopened logs; reload.c has
 * the outcome of a reload. Pointers into generations are never kept. */
#include "master/control_host.h"

#include "base/check.h"
#include "master/master.h"
#include "master/upstream_host.h"
#include "pool/exit.h"
#include "pool/worker.h"
#include "process/process_ops.h"
#include "process/role.h"
#include "session/stream.h"
#include "shm/metrics.h"

#include <assert.h>
#include <signal.h>
#include <unistd.h>

static const char *describe_state(const struct master *master)
{
    switch (master->phase) {
    case MASTER_QUITS:
    case MASTER_RESUMES: /* until it serves */
        return "quitting";
    case MASTER_TERMINATES:
        return "stopping";
    default:
        if (master->upgrade.phase >= UPGRADE_STARTING)
            return "upgrading";
        if (master->reload.phase != RELOAD_IDLE)
            return "reloading";
        if (master->pool.serving->crashing)
            return "crashing";
        return master->pool.serving->phase == GENERATION_DRAINING ? "not accepting" : "running";
    }
}

static void fill_status(void *host, struct control_status *out)
{
    const struct master *master = master_of(host);
    const struct upgrade *upgrade = &master->upgrade;

    assert(role_is(ROLE_MASTER));
    assert(
        master->pool.serving != NULL); /* the control socket is published by the first generation */
    *out = (struct control_status) {
        .state = describe_state(master),
        .configuration = master->options->conf,
        .started_ms = master->started.wall_ms,
        .uptime_ms = (int64_t)(master->clock.mono_ms - master->started.mono_ms),
        .reload = { master->result.any, master->result.ok, master->result.at_ms,
            master->result.why },
        .death_names = pool_death_names,
        .deaths = master->pool.deaths,
        .death_n = POOL_DEATHS,
        .listeners = &master->pool.serving->cycle->stream.listeners,
    };
    if (upgrade->phase != UPGRADE_NONE) {
        out->upgrade.role = upgrade_is_new(upgrade) ? "new" : "old";
        out->upgrade.other = upgrade->other;
        out->upgrade.serves =
            upgrade->phase == UPGRADE_HANDED_OVER || upgrade->phase == UPGRADE_BESIDE;
        out->upgrade.main = upgrade->main;
        if (upgrade->control != NULL &&
            !control_socket_is_at(&master->endpoints.control, upgrade->control))
            out->upgrade.control = upgrade->control;
    }
    if (master->phase == MASTER_RUNS)
        commands_fill_status(&master->commands, out);
    shared_totals(master->shared, out->totals);
    left_behind_status(&master->left, out);
}

/* Returns generation number `i` of the status, which leaves out a generation kept without
 * workers. */
static const struct generation *find_generation(const struct master *master, unsigned i)
{
    const struct generation *generation;

    TAILQ_FOREACH (generation, &master->pool.generations, link)
        if ((generation->process_n > 0 || generation == master->pool.serving) && i-- == 0)
            return generation;
    return NULL;
}

static bool fill_generation(void *host, unsigned i, struct control_generation *out)
{
    const struct master *master = master_of(host);
    const struct generation *generation = find_generation(master, i);
    bool serves;

    if (generation == NULL)
        return false;
    serves = generation == master->pool.serving;
    *out = (struct control_generation) {
        .number = generation->number,
        .state =
            generation->phase >= GENERATION_REPLACED || (serves && master->phase != MASTER_RUNS)
                ? "draining"
            : generation->crashing ? "crashing"
            : serves               ? "live"
                                   : "starting",
        .since_ms = generation->since_ms,
        .worker_connections = generation->cycle->events.worker_connections,
    };
    return true;
}

static const char *worker_state(
    const struct generation *generation, const struct pool_worker *worker)
{
    if (worker->pid == 0)
        return generation->phase >= GENERATION_REPLACED || generation->pool->ending ? "ended"
                                                                                    : "waiting";
    if (generation->phase >= GENERATION_REPLACED)
        return "draining";
    switch (worker->phase) {
    case POOL_WORKER_RELEASED: /* by a signal that was not ours */
        return "draining";
    case POOL_WORKER_ACCEPTING:
        return worker->task == TASK_ASK ? "resolving" : "accepting";
    case POOL_WORKER_READY:
        return "ready";
    default:
        return "starting";
    }
}

static uint64_t read_counter(const struct counters *counters, enum counter counter)
{
    return atomic_load_explicit(&counters->n[counter], memory_order_relaxed);
}

/* Returns the protocol of a histogram; the last histogram is shared by the protocols beyond. */
static const char *callbacks_name(const struct cycle *cycle, unsigned row)
{
    const struct server *server;

    STAILQ_FOREACH (server, &cycle->stream.servers, link)
        if (server->protocol != NULL && server->protocol_index == row)
            return row < HEARTBEAT_PROTOCOLS - 1 ? server->protocol->name : "others";
        else if (server->protocol != NULL && server->protocol_index > row &&
                 row == HEARTBEAT_PROTOCOLS - 1)
            return "others";
    return NULL;
}

static void fill_loop(
    const struct cycle *cycle, const struct heartbeat *heartbeat, struct control_worker *out)
{
    unsigned n = 0;

    out->stalls = atomic_load_explicit(&heartbeat->stalls, memory_order_relaxed) & INT64_MAX;
    histogram_summarize(&heartbeat->turns, &out->turns);
    for (unsigned i = 0; i < HEARTBEAT_PROTOCOLS; i++) {
        const char *name = callbacks_name(cycle, i);

        if (name == NULL)
            continue;
        out->callbacks[n].protocol = name;
        histogram_summarize(&heartbeat->callbacks[i], &out->callbacks[n].times);
        n++;
    }
    assert(n < countof(out->callbacks));
}

static void fill_process(const struct pool_worker *worker, struct control_worker *out)
{
    *out = (struct control_worker) {
        .state = worker_state(worker->generation, worker),
        .restarts = worker->fills > 0 ? worker->fills - 1 : 0,
    };
    if (worker->pid <= 0)
        return;
    out->pid = worker->pid;
    out->slot = worker->slot.slot;
    out->uptime_ms = worker->generation->pool->clock->mono_ms - worker->started_ms;
}

static bool fill_resolver(void *host, unsigned i, struct control_worker *out)
{
    const struct master *master = master_of(host);
    const struct generation *generation = find_generation(master, i);

    if (generation == NULL || generation->worker_n == generation->serve_n)
        return false;
    fill_process(&generation->workers[generation->serve_n], out);
    return true;
}

static bool fill_worker(void *host, unsigned i, unsigned j, struct control_worker *out)
{
    const struct master *master = master_of(host);
    const struct generation *generation = find_generation(master, i);
    const struct counters *counters;
    const struct pool_worker *worker;

    if (generation == NULL || j >= generation->serve_n)
        return false;
    worker = &generation->workers[j];
    fill_process(worker, out);
    if (worker->pid <= 0)
        return true;
    counters = &shared_slot(master->shared, worker->slot)->counters;
    out->connections = read_counter(counters, COUNTER_ACTIVE);
    out->used = read_counter(counters, COUNTER_SLOTS);
    out->requests = read_counter(counters, COUNTER_REQUESTS);
    fill_loop(generation->cycle, &shared_slot(master->shared, worker->slot)->heartbeat, out);
    return true;
}

/* Finds a server of protocol number `i` of the configuration in force. */
static const struct server *find_protocol_server(const struct cycle *cycle, unsigned i)
{
    const struct server *server;
    bool seen[STREAM_PROTOCOLS_MAX] = { false };

    STAILQ_FOREACH (server, &cycle->stream.servers, link) {
        if (server->protocol == NULL || seen[server->protocol_index])
            continue;
        if (i-- == 0)
            return server;
        seen[server->protocol_index] = true;
    }
    return NULL;
}

static const struct cycle *serving_cycle(const void *host)
{
    return master_of(host)->pool.serving->cycle;
}

static const char *name_protocol(void *host, unsigned i)
{
    const struct server *server = find_protocol_server(serving_cycle(host), i);

    return server != NULL ? server->protocol->name : NULL;
}

static bool fill_metric(void *host, unsigned i, unsigned j, struct control_metric *out)
{
    const struct server *server = find_protocol_server(serving_cycle(host), i);
    const fb_metric *metric;

    if (server == NULL || server->metrics == NULL || j >= server->protocol->metric_n)
        return false;
    metric = &server->protocol->metrics[j];
    *out = (struct control_metric) {
        .name = metric->name,
        .kind = metric->kind == FB_GAUGE ? "gauge" : "counter",
        .total = shm_metrics_total(zone_memory(server->metrics), server->metrics->shape, j),
    };
    return true;
}

static const char *accept_command(void *host, enum command command)
{
    struct master *master = master_of(host);
    bool begins = command == COMMAND_RELOAD || command == COMMAND_UPGRADE;

    assert(command > COMMAND_NONE && command < COMMAND_N);
    if (begins && master->phase != MASTER_RUNS)
        return "the daemon is ending";
    if (command == COMMAND_RESUME && master->phase != MASTER_QUITS)
        return master->phase == MASTER_TERMINATES ? "the daemon is stopping: it is too late"
                                                  : "the daemon is not shutting down";
    if (command == COMMAND_LEAVE && master->upgrade.phase != UPGRADE_NONE)
        return "another master process runs beside this one: the upgrade is not complete";
    if (command == COMMAND_LEAVE && master->phase == MASTER_TERMINATES)
        return "the daemon is ending";
    commands_request(&master->commands, command);
    return NULL;
}

static bool is_worker(void *host, pid_t pid)
{
    return pool_find_worker(&master_of(host)->pool, pid) != NULL;
}

static bool is_worker_user(void *host, uid_t uid)
{
    const struct master *master = master_of(host);
    const struct generation *generation;

    TAILQ_FOREACH (generation, &master->pool.generations, link) {
        const struct core_settings *core = &generation->cycle->core;

        if (uid == (core->user != NULL ? core->uid : geteuid()))
            return true;
    }
    return false;
}

static bool is_master(void *host, pid_t pid)
{
    const struct master *master = master_of(host);

    /* workers left to us are not our children */
    if (master->is_left && pid > 0 && pool_find_worker(&master->pool, pid) != NULL)
        return true;
    return pid == process_ops->self() || (pid > 0 && pid == master->upgrade.other);
}

static const struct control_ops ops = {
    .status = fill_status,
    .generation = fill_generation,
    .worker = fill_worker,
    .resolver = fill_resolver,
    .protocol = name_protocol,
    .metric = fill_metric,
    .upstream = upstream_host_next,
    .upstream_servers = upstream_host_servers,
    .upstream_names = upstream_host_names,
    .upstream_set = upstream_host_set,
    .upstreams_end = upstream_host_end,
    .command = accept_command,
    .is_worker = is_worker,
    .is_worker_user = is_worker_user,
    .is_master = is_master,
};

void control_host_init(struct master *master)
{
    control_init(
        &master->control, &ops, master, &master->endpoints.control, &master->log, &master->timers);
}

void control_host_refuse_waiting(struct master *master)
{
    struct control_outcome outcome = { .ok = false, .error = "the daemon is ending" };

    assert(master->phase != MASTER_RUNS);
    control_reply(&master->control, CONTROL_WAIT_RELOAD, &outcome);
    control_reply(&master->control, CONTROL_WAIT_UPGRADE, &outcome);
    control_reply(&master->control, CONTROL_WAIT_RESUME, &outcome);
    if (master->phase == MASTER_TERMINATES)
        control_reply(
            &master->control, CONTROL_WAIT_QUIT, &(struct control_outcome) { .ok = true });
}

void control_host_reopen_logs(struct master *master)
{
    struct log *log = &master->log;
    struct diag *diag = diag_create(), *before = log->diag;
    uint32_t session = log->diag_session;
    char why[DIAG_REASON_MAX] = "";
    struct control_outcome outcome = { .error = why, .diag = diag };

    log_collect(log, diag);
    pool_reopen_logs(&master->pool);
    outcome.ok = !diag_reason(diag, LEVEL_ALERT, why, sizeof(why));
    log->diag = before;
    log->diag_session = session;
    log_update(log);
    control_reply(&master->control, CONTROL_WAIT_REOPEN, &outcome);
    diag_destroy(&diag);
}

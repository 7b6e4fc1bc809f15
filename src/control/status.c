/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the status as JSON, from the pool, the host's part and the kernel's queues of listeners.
 * Nothing is changed. Counters are written by workers: each is read once, and never relied on. */
#include "control/status.h"

#include "base/check.h"
#include "base/compiler.h"
#include "control/problems.h"
#include "control/traffic.h"
#include "control/worker_state.h"
#include "os/sockets.h"
#include "pool/exit.h"
#include "pool/generation.h"
#include "process/process_ops.h"
#include "session/stream.h"
#include "shm/metrics.h"

#include <time.h>
#include <unistd.h>

void control_status_time(struct json *json, const char *key, int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char text[32];

    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_string(json, key, text);
}

void control_status_log_level(const struct pool *pool, struct json *json)
{
    const struct pool_log_level *level = &pool->log_level;

    assert(level->override != 0);
    json_object(json, "log_level");
    json_string(json, "level", log_level_name((enum log_level)(level->override - 1)));
    if (level->until_ms != 0) {
        control_status_time(json, "until", level->until_ms);
        json_number(json, "left_ms", (int64_t)pool_ms_until(pool, level->end.deadline));
    }
    json_close(json);
}

/* Writes the members of a histogram's summary. */
static void write_times(const struct histogram *times, struct json *json)
{
    struct histogram_summary summary;

    heartbeat_summarize(times, &summary);
    json_number(json, "n", (int64_t)summary.n);
    json_number(json, "p50_us", (int64_t)summary.p50);
    json_number(json, "p90_us", (int64_t)summary.p90);
    json_number(json, "p99_us", (int64_t)summary.p99);
    json_number(json, "p999_us", (int64_t)summary.p999);
    json_number(json, "max_us", (int64_t)summary.max);
}

/* Returns the protocol of a histogram; the last histogram is shared by the protocols beyond. */
static const char *callbacks_name(const struct cycle *cycle, unsigned row)
{
    const unsigned last = HEARTBEAT_PROTOCOLS - 1;
    const struct server *server;

    STAILQ_FOREACH (server, &cycle->stream.servers, link)
        if (server->protocol != NULL &&
            (server->protocol_index < last ? server->protocol_index : last) == row)
            return row < last ? server->protocol->name : "others";
    return NULL;
}

/* Writes the times of the loop's turns, and of the callbacks of each protocol. */
static void write_loop(
    const struct cycle *cycle, const struct heartbeat *heartbeat, struct json *json)
{
    uint64_t stalls = atomic_load_explicit(&heartbeat->stalls, memory_order_relaxed);

    json_number(json, "stalls", (int64_t)(stalls & INT64_MAX));
    json_object(json, "turns");
    write_times(&heartbeat->turns, json);
    json_close(json);
    json_array(json, "callbacks");
    for (unsigned i = 0; i < HEARTBEAT_PROTOCOLS; i++) {
        const char *name = callbacks_name(cycle, i);

        if (name == NULL)
            continue;
        json_object(json, NULL);
        json_string(json, "protocol", name);
        write_times(&heartbeat->callbacks[i], json);
        json_close(json);
    }
    json_close(json);
}

static void write_counter(
    struct json *json, const char *key, const struct slot *slot, enum counter counter)
{
    json_number(
        json, key, (int64_t)atomic_load_explicit(&slot->counters.n[counter], memory_order_relaxed));
}

/* Writes the usage of a process; numbers not told by the system are left out. */
static void write_usage(pid_t pid, struct json *json)
{
    struct proc_usage usage;

    process_ops->proc_usage(pid, &usage);
    if (usage.cpu_ms >= 0)
        json_number(json, "cpu_ms", usage.cpu_ms);
    if (usage.memory >= 0)
        json_number(json, "memory", usage.memory);
    if (usage.descriptors >= 0)
        json_number(json, "descriptors", usage.descriptors);
    if (usage.descriptors_max >= 0)
        json_number(json, "descriptors_max", usage.descriptors_max);
}

/* Writes the members of a worker, or of a helper, and closes the object. */
static void write_worker(
    const struct control *control, const struct pool_worker *worker, struct json *json)
{
    const struct pool *pool = control->pool;
    const struct slot *slot = NULL;
    bool serves = worker->task == TASK_SERVE;
    struct worker_state state;

    control_worker_state(control, worker, &state);
    if (worker->pid != 0)
        json_number(json, "pid", worker->pid);
    if (worker->pid != 0 && serves) {
        slot = shared_slot(pool->shared, worker->slot);
        json_number(json, "slot", worker->slot.slot);
    }
    json_string(json, "state", state.name);
    if (state.trouble == WORKER_STUCK) {
        json_number(json, "stuck_ms", (int64_t)state.stuck_ms);
        json_string(json, "where", state.where);
    }
    if (state.drain_ms > 0)
        json_number(json, "drain_ms", (int64_t)state.drain_ms);
    json_number(json, "restarts", worker->fills > 0 ? worker->fills - 1 : 0);
    if (slot != NULL) {
        write_counter(json, "connections", slot, COUNTER_ACTIVE);
        write_counter(json, "worker_connections_used", slot, COUNTER_SLOTS);
        write_counter(json, "requests", slot, COUNTER_REQUESTS);
    }
    if (worker->pid != 0) {
        json_number(json, "uptime_ms", (int64_t)(pool->clock->mono_ms - worker->started_ms));
        write_usage(worker->pid, json);
    }
    if (slot != NULL)
        write_loop(worker->generation->cycle, &slot->heartbeat, json);
    json_close(json);
}

/* Writes keepers, in the order of their workers, and the resolver process. */
static void write_helpers(
    const struct control *control, const struct generation *generation, struct json *json)
{
    const struct pool_worker *helpers = generation->workers + generation->serve_n;

    if (generation->keeper_n > 0) {
        json_array(json, "keepers");
        for (unsigned i = 0; i < generation->keeper_n; i++) {
            json_object(json, NULL);
            write_worker(control, &helpers[i], json);
        }
        json_close(json);
    }
    if (generation->worker_n > generation->serve_n + generation->keeper_n) {
        json_object(json, "resolver");
        write_worker(control, &helpers[generation->keeper_n], json);
    }
}

/* Writes the generations but for one kept without workers; `ends`: the daemon does. */
static void write_generations(const struct control *control, bool ends, struct json *json)
{
    const struct pool *pool = control->pool;
    const struct generation *generation;
    const struct pool_worker *worker;

    json_array(json, "generations");
    TAILQ_FOREACH (generation, &pool->generations, link) {
        bool serves = generation == pool->serving;

        if (generation->process_n == 0 && !serves)
            continue;
        json_object(json, NULL);
        json_number(json, "number", generation->number);
        json_string(json, "state",
            generation->phase >= GENERATION_REPLACED || (serves && ends) ? "draining"
            : generation->crashing                                       ? "crashing"
            : serves                                                     ? "live"
                                                                         : "starting");
        control_status_time(json, "since", generation->since_ms);
        json_number(json, "worker_connections", generation->cycle->events.worker_connections);
        json_array(json, "workers");
        GENERATION_FOREACH_SERVING (worker, generation) {
            json_object(json, NULL);
            write_worker(control, worker, json);
        }
        json_close(json);
        write_helpers(control, generation, json);
        json_close(json);
    }
    json_close(json);
}

static void write_totals(struct shared *shared, struct json *json)
{
    static const struct {
        const char *name;
        enum counter counter; /* COUNTERS: the connections that neither read nor write */
    } rows[] = {
        { "accepts", COUNTER_ACCEPTS },
        { "handled", COUNTER_HANDLED },
        { "requests", COUNTER_REQUESTS },
        { "active", COUNTER_ACTIVE },
        { "reading", COUNTER_READING },
        { "writing", COUNTER_WRITING },
        { "waiting", COUNTERS },
        { "reclaimed", COUNTER_RECLAIMED },
        { "passes", COUNTER_PASSES },
        { "yields", COUNTER_YIELDS },
    };
    uint64_t totals[COUNTERS + 1], busy;

    shared_totals(shared, totals);
    busy = totals[COUNTER_READING] + totals[COUNTER_WRITING];
    totals[COUNTERS] = totals[COUNTER_ACTIVE] > busy ? totals[COUNTER_ACTIVE] - busy : 0;
    json_object(json, "totals");
    for (size_t i = 0; i < countof(rows); i++)
        json_number(json, rows[i].name, (int64_t)totals[rows[i].counter]);
    json_close(json);
}

/* Writes the queues of a listener's sockets, added up. */
static void write_queues(const struct listener *listener, struct json *json)
{
    static const char *const names[] = { "backlog", "queue", "drops" };
    bool known = listener->address.any.sa_family != AF_UNIX;
    int64_t sockets = 0, queued = 0, dropped = 0;
    unsigned backlog = 0, queue, drops;

    for (unsigned i = 0; i < listener->fd_n; i++) {
        if (listener->fds[i] == -1)
            continue;
        sockets++;
        known = known && os_listening_queue(listener->fds[i], &backlog, &queue) != -1 &&
                os_listening_drops(listener->fds[i], &drops) != -1;
        queued += known ? queue : 0;
        dropped += known ? drops : 0;
    }
    json_number(json, "sockets", sockets);
    for (size_t i = 0; i < countof(names); i++)
        if (known && sockets > 0)
            json_number(json, names[i], i == 0 ? backlog : i == 1 ? queued : dropped);
        else
            json_null(json, names[i]);
}

static void write_listeners(const struct listeners *listeners, struct json *json)
{
    const struct listener *listener;

    json_array(json, "listeners");
    STAILQ_FOREACH (listener, &listeners->list, link) {
        json_object(json, NULL);
        json_string(json, "address", listener->text);
        json_string(json, "type", listener->address.any.sa_family == AF_UNIX ? "unix" : "tcp");
        write_queues(listener, json);
        json_close(json);
    }
    json_close(json);
}

/* Writes the metrics that the protocols of the configuration in force declare. */
static void write_metrics(const struct cycle *cycle, struct json *json)
{
    bool seen[STREAM_PROTOCOLS_MAX] = { false };
    const struct server *server;

    json_array(json, "metrics");
    STAILQ_FOREACH (server, &cycle->stream.servers, link) {
        if (server->protocol == NULL || seen[server->protocol_index])
            continue;
        seen[server->protocol_index] = true;
        for (unsigned i = 0; server->metrics != NULL && i < server->protocol->metric_n; i++) {
            const fb_metric *metric = &server->protocol->metrics[i];

            json_object(json, NULL);
            json_string(json, "protocol", server->protocol->name);
            json_string(json, "name", metric->name);
            json_string(json, "kind", metric->kind == FB_GAUGE ? "gauge" : "counter");
            json_number(json, "total",
                shm_metrics_total(zone_memory(server->metrics), server->metrics->shape, i));
            json_close(json);
        }
    }
    json_close(json);
}

/* Writes the number of lost log lines of all processes, and notes an increase. */
static void write_log_losses(struct control *control, struct json *json)
{
    const struct pool *pool = control->pool;
    uint64_t totals[COUNTERS], n;

    shared_totals(pool->shared, totals);
    n = totals[COUNTER_LOST];
    if (pool->log->lost != NULL)
        n += atomic_load_explicit(pool->log->lost, memory_order_relaxed);
    if (n > control->lost)
        control->lost_ms = pool->clock->mono_ms;
    control->lost = n;
    json_number(json, "log_lines_lost", (int64_t)(n & INT64_MAX));
}

void control_status_write(struct control *control, struct json *json)
{
    const struct pool *pool = control->pool;
    bool ends;

    CHECK_KIND(control, CONTROL_KIND);
    assert(pool->serving != NULL); /* the first generation publishes the control socket */
    json_string(json, "version", BUILD_VERSION);
    json_number(json, "pid", process_ops->self());
    write_log_losses(control, json);
    if (pool->log_level.override != 0)
        control_status_log_level(pool, json);
    control_problems_write(control, json);
    ends = control->ops->write_head(control->host, json);
    write_generations(control, ends, json);
    write_totals(pool->shared, json);
    json_object(json, "deaths");
    for (unsigned i = 0; i < POOL_DEATHS; i++)
        if (pool_deaths[i].name != NULL)
            json_number(json, pool_deaths[i].name, (int64_t)pool->deaths[i]);
    json_close(json);
    write_listeners(&pool->serving->cycle->stream.listeners, json);
    control_traffic_write(&pool->serving->cycle->stream, json);
    control->ops->write_tail(control->host, json);
    write_metrics(pool->serving->cycle, json);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the status as JSON, from the host's operations and the kernel's queues of listeners.
 * Nothing is changed. */
#include "control/status.h"

#include "base/check.h"
#include "control/control.h"
#include "os/sockets.h"
#include "process/process_ops.h"

#include <time.h>
#include <unistd.h>

/* Writes "2026-11-21T09:30:00Z". */
static void write_status_time(struct json *json, const char *key, int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char text[32];

    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_string(json, key, text);
}

static void write_reload(const struct control_status *status, struct json *json)
{
    if (!status->reload.any) {
        json_null(json, "reload");
        return;
    }
    assert(status->reload.ok || status->reload.error != NULL);
    json_object(json, "reload");
    json_bool(json, "ok", status->reload.ok);
    write_status_time(json, "at", status->reload.at_ms);
    json_string(json, "error", status->reload.ok ? NULL : status->reload.error);
    json_close(json);
}

static void write_upgrade(const struct control_status *status, struct json *json)
{
    if (status->upgrade.role == NULL) {
        json_null(json, "upgrade");
        return;
    }
    json_object(json, "upgrade");
    json_string(json, "role", status->upgrade.role);
    json_number(json, "other", status->upgrade.other);
    json_string(json, "control", status->upgrade.control);
    json_bool(json, "serves", status->upgrade.serves);
    json_bool(json, "main", status->upgrade.main);
    json_close(json);
}

static void write_times(const struct histogram_summary *times, struct json *json)
{
    json_number(json, "n", (int64_t)times->n);
    json_number(json, "p50_us", (int64_t)times->p50_us);
    json_number(json, "p90_us", (int64_t)times->p90_us);
    json_number(json, "p99_us", (int64_t)times->p99_us);
    json_number(json, "p999_us", (int64_t)times->p999_us);
    json_number(json, "max_us", (int64_t)times->max_us);
}

/* Writes the times of the loop's turns, and of the callbacks of each protocol. */
static void write_loop(const struct control_worker *worker, struct json *json)
{
    json_number(json, "stalls", (int64_t)worker->stalls);
    json_object(json, "turns");
    write_times(&worker->turns, json);
    json_close(json);
    json_array(json, "callbacks");
    for (unsigned i = 0; worker->callbacks[i].protocol != NULL; i++) {
        json_object(json, NULL);
        json_string(json, "protocol", worker->callbacks[i].protocol);
        write_times(&worker->callbacks[i].times, json);
        json_close(json);
    }
    json_close(json);
}

static void write_worker(const struct control_worker *worker, struct json *json)
{
    assert(worker->state != NULL);
    json_object(json, NULL);
    if (worker->pid != 0) {
        json_number(json, "pid", worker->pid);
        json_number(json, "slot", worker->slot);
    }
    json_string(json, "state", worker->state);
    json_number(json, "restarts", worker->restarts);
    if (worker->pid != 0) {
        json_number(json, "connections", (int64_t)worker->connections);
        json_number(json, "worker_connections_used", (int64_t)worker->used);
        json_number(json, "requests", (int64_t)worker->requests);
        json_number(json, "uptime_ms", (int64_t)worker->uptime_ms);
        write_loop(worker, json);
    }
    json_close(json);
}

static void write_resolver(const struct control_worker *resolver, struct json *json)
{
    json_object(json, "resolver");
    if (resolver->pid != 0)
        json_number(json, "pid", resolver->pid);
    json_string(json, "state", resolver->state);
    json_number(json, "restarts", resolver->restarts);
    if (resolver->pid != 0)
        json_number(json, "uptime_ms", (int64_t)resolver->uptime_ms);
    json_close(json);
}

static void write_generations(const struct control *control, struct json *json)
{
    struct control_generation generation;
    struct control_worker worker;

    json_array(json, "generations");
    for (unsigned i = 0; control->ops->generation(control->host, i, &generation); i++) {
        assert(generation.number > 0);
        json_object(json, NULL);
        json_number(json, "number", generation.number);
        json_string(json, "state", generation.state);
        write_status_time(json, "since", generation.since_ms);
        json_number(json, "worker_connections", generation.worker_connections);
        json_array(json, "workers");
        for (unsigned j = 0; control->ops->worker(control->host, i, j, &worker); j++)
            write_worker(&worker, json);
        json_close(json);
        if (control->ops->resolver(control->host, i, &worker))
            write_resolver(&worker, json);
        json_close(json);
    }
    json_close(json);
}

static void write_totals(const uint64_t totals[COUNTERS], struct json *json)
{
    static const char *const names[COUNTERS] = { [COUNTER_ACCEPTS] = "accepts",
        [COUNTER_HANDLED] = "handled",
        [COUNTER_REQUESTS] = "requests",
        [COUNTER_ACTIVE] = "active",
        [COUNTER_READING] = "reading",
        [COUNTER_WRITING] = "writing" };
    static const enum counter later[] = { COUNTER_RECLAIMED, COUNTER_PASSES, COUNTER_YIELDS };
    static const char *const later_names[] = { "reclaimed", "passes", "yields" };
    uint64_t busy = totals[COUNTER_READING] + totals[COUNTER_WRITING];

    json_object(json, "totals");
    for (int i = 0; i < COUNTERS; i++)
        if (names[i] != NULL)
            json_number(json, names[i], (int64_t)totals[i]);
    json_number(json, "waiting",
        totals[COUNTER_ACTIVE] > busy ? (int64_t)(totals[COUNTER_ACTIVE] - busy) : 0);
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
        json_number(json, later_names[i], (int64_t)totals[later[i]]);
    json_close(json);
}

static void write_deaths(const struct control_status *status, struct json *json)
{
    json_object(json, "deaths");
    for (unsigned i = 0; i < status->death_n; i++)
        if (status->death_names[i] != NULL)
            json_number(json, status->death_names[i], (int64_t)status->deaths[i]);
    json_close(json);
}

/* Queues of a listener's sockets, added up. */
struct queues {
    int64_t backlog, queue, drops;
};

static bool add_queues(struct queues *queues, int fd)
{
    unsigned backlog, queue, drops;

    if (os_listening_queue(fd, &backlog, &queue) == -1 || os_listening_drops(fd, &drops) == -1)
        return false;
    queues->backlog = backlog;
    queues->queue += queue;
    queues->drops += drops;
    return true;
}

static void write_queues(const struct listener *listener, struct json *json)
{
    bool known = listener->address.any.sa_family != AF_UNIX;
    struct queues queues = { 0, 0, 0 };
    int64_t sockets = 0;

    for (unsigned i = 0; i < listener->fd_n; i++) {
        if (listener->fds[i] == -1)
            continue;
        sockets++;
        known = known && add_queues(&queues, listener->fds[i]);
    }
    json_number(json, "sockets", sockets);
    if (known && sockets > 0) {
        json_number(json, "backlog", queues.backlog);
        json_number(json, "queue", queues.queue);
        json_number(json, "drops", queues.drops);
        return;
    }
    json_null(json, "backlog");
    json_null(json, "queue");
    json_null(json, "drops");
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

static void write_left(const struct control_status *status, struct json *json)
{
    assert(status->left_n <= CONTROL_LEFT_MAX);
    json_array(json, "left_behind");
    for (unsigned i = 0; i < status->left_n; i++) {
        json_object(json, NULL);
        json_number(json, "pid", status->left[i].pid);
        json_number(json, "master", status->left[i].master);
        json_close(json);
    }
    json_close(json);
}

static void write_pending(const struct control_status *status, struct json *json)
{
    json_array(json, "pending");
    for (unsigned i = 0; status->pending[i].command != NULL; i++) {
        json_object(json, NULL);
        json_string(json, "command", status->pending[i].command);
        json_string(json, "waiting", status->pending[i].why);
        json_close(json);
    }
    json_close(json);
}

/* Writes the metrics declared by protocols. */
static void write_metrics(const struct control *control, struct json *json)
{
    struct control_metric metric;
    const char *protocol;

    json_array(json, "metrics");
    for (unsigned i = 0; (protocol = control->ops->protocol(control->host, i)) != NULL; i++)
        for (unsigned j = 0; control->ops->metric(control->host, i, j, &metric); j++) {
            json_object(json, NULL);
            json_string(json, "protocol", protocol);
            json_string(json, "name", metric.name);
            json_string(json, "kind", metric.kind);
            json_number(json, "total", metric.total);
            json_close(json);
        }
    json_close(json);
}

void control_status_write(struct control *control, struct json *json)
{
    struct control_status status = { .state = NULL };

    CHECK_KIND(control, CONTROL_KIND);
    control->ops->status(control->host, &status);
    assert(status.state != NULL && status.configuration != NULL);
    assert(status.listeners != NULL);
    json_string(json, "version", BUILD_VERSION);
    json_number(json, "pid", process_ops->self());
    json_string(json, "state", status.state);
    write_status_time(json, "started", status.started_ms);
    json_number(json, "uptime_ms", status.uptime_ms);
    json_string(json, "configuration", status.configuration);
    write_reload(&status, json);
    write_upgrade(&status, json);
    write_generations(control, json);
    write_totals(status.totals, json);
    write_deaths(&status, json);
    write_listeners(status.listeners, json);
    write_left(&status, json);
    write_pending(&status, json);
    write_metrics(control, json);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What a client that asks for the status is shown. */
#include "master/master.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <time.h>
#include <unistd.h>

void fb_status_time(struct fb_json *json, const char *key, int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char text[32];

    gmtime_r(&seconds, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    fb_json_string(json, key, text);
}

static void write_result(const struct fb_result *result, struct fb_json *json)
{
    if (!result->any) {
        fb_json_null(json, "reload");
        return;
    }
    fb_json_object(json, "reload");
    fb_json_bool(json, "ok", result->ok);
    fb_status_time(json, "at", result->at_ms);
    fb_json_string(json, "error", result->ok ? NULL : result->why);
    fb_json_close(json);
}

static const char *seat_state(const struct generation *generation, const struct pool_worker *seat)
{
    if (seat->pid == 0)
        return "waiting";
    if (generation_is_ending(generation))
        return "draining";
    switch (seat->phase) {
    case POOL_WORKER_RELEASED: /* somebody has told it to, not us */
        return "draining";
    case POOL_WORKER_ACCEPTING:
        return "accepting";
    case POOL_WORKER_READY:
        return "ready";
    default:
        return "starting";
    }
}

static void write_counter(struct fb_json *json, const char *key, const struct fb_counters *counters,
    enum fb_counter counter)
{
    fb_json_number(
        json, key, (int64_t)atomic_load_explicit(&counters->n[counter], memory_order_relaxed));
}

static void write_seat(const struct master *master, const struct generation *generation,
    const struct pool_worker *seat, struct fb_json *json)
{
    const struct fb_counters *counters = &fb_shared_slot(master->shared, seat->slot)->counters;

    fb_json_object(json, NULL);
    if (seat->pid > 0) {
        fb_json_number(json, "pid", seat->pid);
        fb_json_number(json, "slot", seat->slot.slot);
    }
    fb_json_string(json, "state", seat_state(generation, seat));
    fb_json_number(json, "restarts", seat->fills > 0 ? seat->fills - 1 : 0);
    if (seat->pid > 0) {
        write_counter(json, "connections", counters, FB_ACTIVE);
        write_counter(json, "requests", counters, FB_REQUESTS);
        fb_json_number(json, "uptime_ms", (int64_t)(master->clock.mono_ms - seat->started_ms));
    }
    fb_json_close(json);
}

static const char *generation_state(
    const struct master *master, const struct generation *generation)
{
    if (generation_is_ending(generation))
        return "draining";
    return generation == master->pool.serving ? "live" : "starting";
}

static void write_generations(const struct master *master, struct fb_json *json)
{
    const struct generation *generation;

    fb_json_array(json, "generations");
    TAILQ_FOREACH (generation, &master->pool.generations, link) {
        fb_json_object(json, NULL);
        fb_json_number(json, "number", generation->number);
        fb_json_string(json, "state", generation_state(master, generation));
        fb_status_time(json, "since", generation->since_ms);
        fb_json_number(json, "worker_connections", generation->cycle->events.worker_connections);
        fb_json_array(json, "workers");
        for (unsigned i = 0; i < generation->worker_n; i++)
            write_seat(master, generation, &generation->workers[i], json);
        fb_json_close(json);
        fb_json_close(json);
    }
    fb_json_close(json);
}

static void write_totals(struct fb_shared *shared, struct fb_json *json)
{
    static const char *const names[FB_COUNTERS] = { [FB_ACCEPTS] = "accepts",
        [FB_HANDLED] = "handled",
        [FB_REQUESTS] = "requests",
        [FB_ACTIVE] = "active",
        [FB_READING] = "reading",
        [FB_WRITING] = "writing" };
    uint64_t totals[FB_COUNTERS], busy;

    fb_shared_totals(shared, totals);
    fb_json_object(json, "totals");
    for (int i = 0; i < FB_COUNTERS; i++)
        fb_json_number(json, names[i], (int64_t)totals[i]);
    busy = totals[FB_READING] + totals[FB_WRITING];
    fb_json_number(
        json, "waiting", totals[FB_ACTIVE] > busy ? (int64_t)(totals[FB_ACTIVE] - busy) : 0);
    fb_json_close(json);
}

/* What the kernel knows of the queues of a listener's sockets. */
struct queues {
    int64_t backlog, queue, drops;
};

/* False where it does not say. */
static bool add_queue(int fd, struct queues *queues)
{
    uint32_t memory[SK_MEMINFO_VARS] = { 0 };
    socklen_t length = sizeof(struct tcp_info);
    struct tcp_info info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == -1)
        return false;
    queues->queue += info.tcpi_unacked; /* what these two mean for a socket that listens */
    queues->backlog = info.tcpi_sacked;
    length = sizeof(memory);
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length) == -1)
        return false;
    queues->drops += memory[SK_MEMINFO_DROPS];
    return true;
}

static void write_queues(const struct fb_listener *listener, struct fb_json *json)
{
    bool known = listener->address.any.sa_family != AF_UNIX;
    struct queues queues = { 0, 0, 0 };
    int64_t sockets = 0;

    for (unsigned i = 0; i < listener->fd_n; i++) {
        if (listener->fds[i] == -1)
            continue;
        sockets++;
        known = known && add_queue(listener->fds[i], &queues);
    }
    fb_json_number(json, "sockets", sockets);
    if (known && sockets > 0) {
        fb_json_number(json, "backlog", queues.backlog);
        fb_json_number(json, "queue", queues.queue);
        fb_json_number(json, "drops", queues.drops);
        return;
    }
    fb_json_null(json, "backlog");
    fb_json_null(json, "queue");
    fb_json_null(json, "drops");
}

static void write_listeners(const struct fb_cycle *cycle, struct fb_json *json)
{
    const struct fb_listener *listener;

    fb_json_array(json, "listeners");
    STAILQ_FOREACH (listener, &cycle->stream.listeners, link) {
        fb_json_object(json, NULL);
        fb_json_string(json, "address", listener->text);
        fb_json_string(json, "type", listener->address.any.sa_family == AF_UNIX ? "unix" : "tcp");
        write_queues(listener, json);
        fb_json_close(json);
    }
    fb_json_close(json);
}

static const char *master_state(const struct master *master)
{
    switch (master->phase) {
    case MASTER_QUITS:
        return "quitting";
    case MASTER_TERMINATES:
        return "stopping";
    default:
        if (fb_upgrade_is_pending(master))
            return "upgrading";
        return reload_is_under_way(&master->reload) ? "reloading" : "running";
    }
}

static void write_upgrade(const struct fb_upgrade *upgrade, struct fb_json *json)
{
    if (upgrade->role == FB_UPGRADE_NONE) {
        fb_json_null(json, "upgrade");
        return;
    }
    fb_json_object(json, "upgrade");
    fb_json_string(json, "role", upgrade->role == FB_UPGRADE_OLD ? "old" : "new");
    fb_json_number(json, "other", upgrade->other);
    fb_json_bool(json, "serves", upgrade->serves);
    fb_json_close(json);
}

void fb_status_write(struct master *master, struct fb_json *json)
{
    fb_json_string(json, "version", FB_VERSION);
    fb_json_number(json, "pid", getpid());
    fb_json_string(json, "state", master_state(master));
    fb_status_time(json, "started", master->started.wall_ms);
    fb_json_number(json, "uptime_ms", (int64_t)(master->clock.mono_ms - master->started.mono_ms));
    fb_json_string(json, "configuration", master->options->conf);
    write_result(&master->result, json);
    write_upgrade(&master->upgrade, json);
    write_generations(master, json);
    write_totals(master->shared, json);
    write_listeners(master->pool.serving->cycle, json);
}

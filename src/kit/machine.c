/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulated machine as a test commands it: a worker dies, is replaced, or drains; messages
 * between workers are late or lost; a watched descriptor, with a far end beyond the test, is ready.
 * A death is like a killed process's: siblings see only the acts before the death. */
#include "kit/kit.h"

#include <forkbeard/watch.h>
#include <string.h>
#include <sys/mman.h>

static struct kit_worker *worker_at(fb_test *test, unsigned worker, const char *call)
{
    CHECK_KIND(test, KIT_TEST);
    if (worker >= test->worker_n)
        kit_misused("%s(): there is no worker %u", call, worker);
    return &test->workers[worker];
}

static struct kit_worker *living_worker(fb_test *test, unsigned worker, const char *call)
{
    struct kit_worker *own = worker_at(test, worker, call);

    if (!own->alive)
        kit_misused("%s(): worker %u has gone", call, worker);
    return own;
}

static const struct server *server_of_protocol(const struct cycle *cycle, const char *protocol)
{
    const struct server *server;

    STAILQ_FOREACH (server, &cycle->stream.servers, link)
        if (protocol == NULL ||
            (server->protocol != NULL && strcmp(server->protocol->name, protocol) == 0))
            break;
    return server;
}

fb_worker *fb_test_worker_at(fb_test *test, unsigned worker, const char *protocol)
{
    struct kit_worker *own = worker_at(test, worker, "fb_test_worker_at");
    const struct server *server;

    if (!own->alive)
        return NULL;
    server = server_of_protocol(own->cycle, protocol);
    if (server == NULL)
        kit_misused("fb_test_worker_at(): no server has \"%s\"",
            protocol != NULL ? protocol : "any protocol");
    return &own->worker.protocols[server->protocol_index];
}

fb_worker *fb_test_worker(fb_test *test)
{
    return fb_test_worker_at(test, 0, NULL);
}

int64_t fb_test_metric(fb_test *test, const char *protocol, const char *metric)
{
    const struct server *server;

    CHECK_KIND(test, KIT_TEST);
    fb_test_run(test);
    server = server_of_protocol(test->cycle, protocol);
    if (server == NULL || server->protocol == NULL)
        kit_misused("fb_test_metric(): no server has \"%s\"", protocol != NULL ? protocol : "");
    for (uint32_t i = 0; i < server->protocol->metric_n; i++)
        if (strcmp(server->protocol->metrics[i].name, metric) == 0)
            return shm_metrics_total(zone_memory(server->metrics), server->metrics->shape, i);
    kit_misused("fb_test_metric(): \"%s\" has no metric \"%s\"", server->protocol->name, metric);
}

/* The kernel resets the connections of a killed process. */
static void reset_connection(struct fb_conn *conn, void *arg)
{
    fb_test *test = arg;
    struct sim_socket *socket = sim_socket_find(test->sim, conn->source.fd);

    CHECK_KIND(test, KIT_TEST);
    if (socket != NULL && !socket->closed)
        sim_kill(socket);
}

/* Makes the worker's zones private: no sibling sees a change. */
static void isolate_zones(struct kit_worker *own)
{
    struct zone *zone;

    STAILQ_FOREACH (zone, &own->cycle->zones, link)
        if (zone->segment.base != NULL &&
            mmap(zone->segment.base, zone->segment.size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_FIXED, zone->segment.fd, 0) == MAP_FAILED)
            kit_misused("no memory for the zones of a dead worker");
}

/* Waits for the end of jobs: the struct worker has to outlive jobs. */
static void await_jobs(struct kit_worker *own)
{
    while (jobs_busy(&own->worker) > 0) {
        kit_worker_await_job(own);
        worker_turn(&own->worker);
    }
}

void fb_test_kill(fb_test *test, unsigned worker)
{
    struct kit_worker *own = living_worker(test, worker, "fb_test_kill");

    if (!test->several)
        kit_misused("fb_test_kill(): a single process has no worker that could die");
    fb_test_run(test);
    kit_ways_flush(test, own);
    if (!own->alive) /* the worker has drained meanwhile */
        return;
    net_each(&own->worker.stream.net, reset_connection, test);
    isolate_zones(own);
    own->is_killed = true;
    own->worker.log.level = LEVEL_EMERG;
    test->sim->holds_notices = false;
    await_jobs(own);
    kit_master_tell_gone(test, own);
    kit_worker_end(own);
    own->is_killed = false;
    fb_test_run(test);
}

int fb_test_replace(fb_test *test, unsigned worker)
{
    int result;

    CHECK_KIND(test, KIT_TEST);
    if (!test->several || worker >= test->worker_n || test->workers[worker].alive)
        kit_misused("fb_test_replace(): worker %u has not gone", worker);
    fb_test_run(test);
    result = kit_worker_start(&test->workers[worker]);
    fb_test_run(test);
    return result;
}

static void drain_worker(struct kit_worker *own, uint64_t deadline)
{
    own->cycle->core.worker_shutdown_timeout = (int64_t)deadline;
    signals_raise(COMMAND_QUIT);
    worker_take_commands(&own->worker);
}

void fb_test_drain(fb_test *test, uint64_t deadline)
{
    struct kit_worker *own;

    fb_test_run(test);
    KIT_FOREACH_ALIVE(own, test)
    drain_worker(own, deadline);
    fb_test_run(test);
}

void fb_test_drain_worker(fb_test *test, unsigned worker, uint64_t deadline)
{
    struct kit_worker *own = living_worker(test, worker, "fb_test_drain_worker");

    fb_test_run(test);
    if (own->alive) /* a drain begun before may have ended just now */
        drain_worker(own, deadline);
    fb_test_run(test);
}

static void set_ways(fb_test *test, unsigned from, unsigned to, fb_test_way how)
{
    for (unsigned i = 0; i < test->worker_n; i++)
        for (unsigned j = 0; j < test->worker_n; j++)
            if ((from == FB_TEST_EVERY || from == i) && (to == FB_TEST_EVERY || to == j))
                kit_way(test, i, j)->how = how;
}

void fb_test_link(fb_test *test, unsigned from, unsigned to, fb_test_way how)
{
    CHECK_KIND(test, KIT_TEST);
    if ((from != FB_TEST_EVERY && from >= test->worker_n) ||
        (to != FB_TEST_EVERY && to >= test->worker_n))
        kit_misused("fb_test_link(): there is no worker %u, or no worker %u", from, to);
    fb_test_run(test); /* older messages go the old way */
    set_ways(test, from, to, how);
    kit_master_serve(test);
}

static void report_watched(struct loop *loop, struct source *source, enum event_direction direction)
{
    if (source->events[direction].armed)
        loop_report(loop, source, direction);
}

void fb_test_ready(fb_test *test, int fd, unsigned events)
{
    const struct fb_watch *watch = NULL;
    struct kit_worker *own;

    CHECK_KIND(test, KIT_TEST);
    KIT_FOREACH_ALIVE(own, test)
    {
        watch = watches_find(&own->worker, fd);
        if (watch != NULL)
            break;
    }
    if (watch == NULL)
        kit_misused("fb_test_ready() of descriptor %d, which is not watched", fd);
    if (events & FB_WATCH_READ)
        report_watched(kit_loop_of(own), watch->source, EVENT_READ);
    if (events & FB_WATCH_WRITE)
        report_watched(kit_loop_of(own), watch->source, EVENT_WRITE);
}

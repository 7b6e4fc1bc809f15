/* SPDX-License-Identifier: BSD-2-Clause */
/* The workers of the simulated machine, as a test asks for them: dies, is replaced, drains. A death
 * is that of a killed process: others see no more of it than what it had done before. */
#include "kit/kit.h"
#include "worker/threads.h"

#include <string.h>
#include <sys/mman.h>

/* Time for a job of fb_run() that the dead worker has under way, ms of the real clock. */
#define JOB_MS 60000

struct kit_worker *kit_worker_at(fb_test *test, unsigned worker, const char *call)
{
    CHECK_KIND(test, KIT_TEST);
    if (worker >= test->worker_n)
        kit_misused("%s(): there is no worker %u", call, worker);
    if (!test->workers[worker].alive)
        kit_misused("%s(): worker %u has gone", call, worker);
    return &test->workers[worker];
}

static const struct server *find_server(const struct cycle *cycle, const char *protocol)
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
    const struct server *server;

    CHECK_KIND(test, KIT_TEST);
    if (worker >= test->worker_n)
        kit_misused("fb_test_worker_at(): there is no worker %u", worker);
    if (!test->workers[worker].alive)
        return NULL;
    server = find_server(test->workers[worker].cycle, protocol);
    if (server == NULL)
        kit_misused("fb_test_worker_at(): no server has \"%s\"",
            protocol != NULL ? protocol : "any protocol");
    return &test->workers[worker].worker.protocols[server->protocol_index];
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
    server = find_server(test->cycle, protocol);
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

/* Makes the worker's zones private, so that nobody sees what it changes in them. */
static void isolate_zones(struct kit_worker *own)
{
    struct zone *zone;

    STAILQ_FOREACH (zone, &own->cycle->zones, link)
        if (zone->segment.base != NULL &&
            mmap(zone->segment.base, zone->segment.size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_FIXED, zone->segment.fd, 0) == MAP_FAILED)
            kit_misused("no memory for the zones of a dead worker");
}

/* Lets jobs end, which the struct worker has to outlive. */
static void await_jobs(struct kit_worker *own)
{
    while (threads_busy(&own->worker) > 0) {
        if (!sim_await_notice(kit_loop_of(own), JOB_MS))
            kit_misused("a job of fb_run() has not ended after %d s", JOB_MS / 1000);
        worker_turn(&own->worker);
    }
}

void fb_test_kill(fb_test *test, unsigned worker)
{
    struct kit_worker *own = kit_worker_at(test, worker, "fb_test_kill");

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
    sim_hold_notices(test->sim, false);
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

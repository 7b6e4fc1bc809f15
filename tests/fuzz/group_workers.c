/* SPDX-License-Identifier: BSD-2-Clause */
/* The group has servers of all kinds: without limits, not checked, heavy, a backup where the
 * balancer knows backups, and a server without addresses until its list is replaced. */
#include "fuzz/group_workers.h"

#include "base/compiler.h"
#include "upstream/balancer.h"

#include <stdlib.h>
#include <string.h>

static size_t pieces; /* pieces of memory of the groups */

static void *count_alloc(const struct memory *memory, size_t n)
{
    (void)memory;
    pieces++;
    return malloc(n);
}

static void count_release(const struct memory *memory, void *p)
{
    (void)memory;
    pieces -= p != NULL;
    free(p);
}

static const struct memory counted = { .alloc = count_alloc, .release = count_release };

static const char *const server_names[SERVERS] = { "a", "b", "c", "d", "e" };

static void report(
    struct choice *choice, enum log_level level, const char *upstream, const char *message)
{
    (void)choice;
    require(level >= LEVEL_EMERG && *upstream != '\0' && *message != '\0', "a line says something");
}

static uint32_t random_number(struct upstreams *upstreams, uint32_t below)
{
    const struct worker *worker = container_of(upstreams, struct worker, upstreams);

    require(below > 0, "a number is below something");
    return (uint32_t)(next_byte(worker->scene->in) * 257u) % below;
}

static void add_server(struct worker *worker, unsigned i)
{
    const struct scene *scene = worker->scene;
    struct upstream_server *server = &worker->servers[i];

    *server = (struct upstream_server) {
        .name = server_names[i],
        .target = i < SERVERS - 1 ? &scene->targets[i * ADDRESSES] : NULL,
        .host = i == SERVERS - 1 ? "e.test" : NULL,
        .is_checked = i != 1,
        .backup = i == 3 && scene->balancer > 1,
        .weight = i == 2 ? 65535 : i + 1,
        .max_conns = (scene->flags & HAS_LIMITS) != 0 ? 1 + i % 3 : 0,
        .max_fails = i % 3,
        .fail_timeout = (int64_t)i * 1000,
        .slow_start = (scene->flags & HAS_SLOW_START) != 0 ? 5000 : 0,
    };
    STAILQ_INSERT_TAIL(&worker->upstream.servers, server, link);
    worker->upstream.server_n++;
}

static void add_checks(struct worker *worker)
{
    for (unsigned i = 0; i < countof(worker->checks); i++)
        worker->checks[i] = (struct upstream_check) {
            .next = i + 1 < countof(worker->checks) ? &worker->checks[i + 1] : NULL,
            .index = i,
            .interval = 1000,
            .jitter = i * 500,
            .timeout = 700,
            .fails = 1 + i,
            .passes = 2 - i,
            .port = (in_port_t)i,
            .mandatory = i == 1,
        };
    worker->upstream.checks = worker->checks;
}

void start_worker(struct scene *scene, unsigned i)
{
    static const struct balancer *const balancers[] = { &balancer_hash, &balancer_random,
        &balancer_round_robin, &balancer_least_conn, &balancer_least_time };
    struct worker *worker = &scene->workers[i];
    struct upstream *upstream = &worker->upstream;

    memset(worker, 0, sizeof(*worker));
    scene->serial++;
    worker->scene = scene;
    log_init(&worker->log, NULL, 0);
    STAILQ_INIT(&worker->list);
    STAILQ_INSERT_TAIL(&worker->list, upstream, link);
    worker->loop.clock.mono_ms = scene->now_ms;
    worker->loop.log = &worker->log;
    worker->upstreams = (struct upstreams) { .list = &worker->list,
        .loop = &worker->loop,
        .log = &worker->log,
        .memory = &counted,
        .report = report,
        .random = random_number,
        .generation = scene->serial,
        .id = { .slot = i + 1, .serial = scene->serial } };
    upstream->kind = UPSTREAM_KIND;
    upstream->name = "group";
    upstream->balance.balancer = balancers[scene->balancer];
    upstream->balance.consistent = upstream->balance.two = (scene->flags & IS_INFLIGHT) != 0;
    upstream->balance.inflight = scene->balancer == 4 && (scene->flags & IS_INFLIGHT) != 0;
    upstream->balance.time = UPSTREAM_TIME_FIRST_BYTE;
    STAILQ_INIT(&upstream->servers);
    for (unsigned server = 0; server < SERVERS; server++)
        add_server(worker, server);
    if (scene->zone != NULL) {
        worker->zone = *scene->zone;
        upstream->zone = &worker->zone;
        zones_slot_acquired(&scene->zones, worker->upstreams.id);
    }
    if (scene->zone != NULL && (scene->flags & HAS_CHECKS) != 0)
        add_checks(worker);
    require(upstreams_open(&worker->upstreams) == 0, "the groups are opened");
    worker->runs = true;
}

void end_try(struct session *session, fb_try_end how)
{
    if (session->began)
        choice_end(&session->choice, how);
}

void end_session(struct session *session, fb_try_end how)
{
    end_try(session, how);
    if (session->began)
        choice_done(&session->choice);
    memset(session, 0, sizeof(*session));
}

void end_worker(struct worker *worker)
{
    for (unsigned i = 0; i < SESSIONS; i++)
        end_session(&worker->sessions[i], FB_TRY_SERVED);
    upstreams_close(&worker->upstreams);
    if (worker->scene->zone != NULL)
        zones_slot_released(&worker->scene->zones, worker->upstreams.id);
    worker->runs = false;
}

/* Frees the rest of the worker as a ghost's, with a row of its own. */
void kill_worker(struct worker *worker, uint8_t how)
{
    struct peers *peers = worker->upstream.peers;
    struct zone_hold hold = { .lock = NULL };
    shm_row *ghost = calloc(ENTRIES, sizeof(*ghost));

    require(ghost != NULL, "no memory");
    if (how % 2 == 0)
        upstream_zone_lock(&worker->zone, how % 4 == 0 ? peers->lock : UPSTREAM_ZONE_TABLE, &hold);
    zones_slot_released(&worker->scene->zones, worker->upstreams.id);
    worker->zone.row = ghost;
    for (unsigned i = 0; i < peers->n; i++)
        if (peers->list[i]->zone != NULL)
            peers->list[i]->conns = &ghost[peers->list[i]->entry];
    for (unsigned i = 0; i < SESSIONS; i++) {
        struct peer *peer = worker->sessions[i].choice.peer;

        if (peer != NULL && peer->zone != NULL)
            peer->conns = &ghost[peer->entry];
    }
    end_worker(worker);
    free(ghost);
}

size_t worker_pieces(void)
{
    return pieces;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Two workers use a group: sessions choose peers and end their tries, names change lists, the
 * operator speaks, checks are made, workers are killed and started anew, and in between an attacker
 * stores into the entries and locks of the zone. The first byte chooses the balancer, the second
 * the group; then come steps of a byte for the kind, with arguments behind. After every step
 * references and connections are counted; in the end nothing is left. */
#include "base/compiler.h"
#include "fuzz/group_workers.h"
#include "upstream/status.h"
#include "upstream/zone.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Replaces the C library's: a wait for a forged holder is pointless. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)time;
    (void)left;
    return 0;
}

/* ---- Steps ---- */

static void choose(struct worker *worker, struct session *session)
{
    static const uint8_t keys[][2] = { "x", "y", "z" };
    uint8_t how = next_byte(worker->scene->in);
    struct choice_more *more;
    fb_choice status;

    if (session->choice.peer != NULL)
        return;
    if (!session->began) {
        choice_begin(&session->choice, &worker->upstream);
        more = choice_make_more(&session->choice);
        require(more != NULL, "memory");
        more->key = (fb_bytes) { keys[how % countof(keys)], how % 2 };
        session->began = true;
    }
    status = choice_next(&session->choice);
    require((status == FB_CHOICE_SERVER) == (session->choice.peer != NULL), "a choice is a peer");
    if (session->choice.peer != NULL)
        require(choice_has_tried(&session->choice, session->choice.peer), "a peer is tried once");
}

static void go_on(const struct scene *scene, struct session *session)
{
    if (session->choice.peer == NULL)
        return;
    choice_connected(&session->choice);
    if (next_byte(scene->in) % 2 == 0)
        choice_first_byte(&session->choice);
    next_byte(scene->in); /* the corpus has a byte here */
}

/* Gives a server new addresses, with possible duplicates. */
static void replace(struct worker *worker)
{
    struct input *in = worker->scene->in;
    unsigned server = next_byte(in) % SERVERS, n = next_byte(in) % (ADDRESSES + 1);
    struct resolve_found addresses[ADDRESSES];

    for (unsigned i = 0; i < n; i++) {
        uint8_t what = next_byte(in);

        addresses[i] = (struct resolve_found) {
            .address = worker->scene->targets[server * ADDRESSES + what % ADDRESSES].address,
            .weight = what / 8 % 3,
            .backup = worker->servers[server].backup || (what > 128 && worker->scene->balancer > 1),
        };
    }
    require(peers_replace(worker->upstream.peers, &worker->servers[server], addresses, n) == 0,
        "the list is replaced");
}

static void say(struct worker *worker)
{
    uint8_t what = next_byte(worker->scene->in);

    if (worker->scene->zone == NULL)
        return;
    upstream_operator_set(&worker->upstream,
        what > 200 ? worker->scene->targets[what % ADDRESSES].text
                   : worker->servers[what % SERVERS].name,
        (enum upstream_operator)(what / SERVERS % 4), worker->scene->now_ms);
}

static void check_peer(struct worker *worker)
{
    uint8_t what = next_byte(worker->scene->in);
    struct health_probe **probe = &worker->probes[what % PROBES];
    uint64_t wait;

    if (worker->upstream.checks == NULL)
        return;
    if (*probe == NULL) {
        *probe = health_claim(&worker->upstreams, &worker->upstream,
            &worker->checks[what / PROBES % countof(worker->checks)], &wait);
        require((*probe != NULL) == (wait == 0), "a check is due, or later");
        return;
    }
    health_end(&worker->upstreams, *probe, (fb_probe_end)(FB_PROBE_PASSED + what / PROBES % 3),
        "connecting to upstream", 0);
    *probe = NULL;
}

static void see(void *arg, const struct upstream_numbers *numbers)
{
    unsigned *n = arg;

    ++*n;
    require(numbers->server != NULL && strlen(numbers->address) < ADDRESS_TEXT, "a peer has names");
    for (const char *p = numbers->address; *p != '\0'; p++)
        require(*p > ' ' && *p < 0x7f, "an address is printable");
    require(numbers->health <= PEER_HEALTH_BAD && numbers->said <= UPSTREAM_DOWN, "a known state");
}

static void read_status(const struct worker *worker)
{
    unsigned n = 0;

    if (worker->scene->zone == NULL)
        return;
    require(upstream_status_read(&worker->upstream, worker->scene->now_ms, see, &n) == 0, "status");
    upstream_status_forget(worker->upstream.zone);
    require(n <= ENTRIES + SERVERS, "each entry, and each server without one, is seen once");
}

/* Stores what any worker can store. */
static void damage(struct scene *scene)
{
    const struct upstream_zone *zone = &scene->workers[0].zone;
    uint8_t where = next_byte(scene->in), what = next_byte(scene->in), n = next_byte(scene->in);
    size_t size = zone->n * sizeof(struct upstream_zone_entry), at;
    uint8_t *bytes = (uint8_t *)zone->entries;

    if (scene->zone == NULL)
        return;
    scene->damaged = true;
    if (what % 8 == 0) {
        bytes = (uint8_t *)zone->table.shards;
        size = (UPSTREAM_ZONE_LOCKS + 1) * CACHE_LINE;
    }
    at = ((size_t)where << 8 | what) % size;
    for (size_t i = 0; i <= n % 32u && at + i < size; i++)
        bytes[at + i] = n >= 224 ? UINT8_MAX : n >= 192 ? 0 : next_byte(scene->in);
}

/* A reload: a new worker replaces an ended or killed worker. */
static void replace_worker(struct scene *scene, unsigned i)
{
    struct worker *worker = &scene->workers[i];
    uint8_t how = next_byte(scene->in);

    memset(worker->probes, 0, sizeof(worker->probes)); /* they end with the worker */
    if (scene->zone != NULL && how % 8 < 4)
        kill_worker(worker, how);
    else
        end_worker(worker);
    start_worker(scene, i);
}

static void pass_time(struct scene *scene)
{
    scene->now_ms += (uint64_t)next_byte(scene->in) * 50;
    for (unsigned i = 0; i < WORKERS; i++)
        scene->workers[i].loop.clock.mono_ms = scene->now_ms + i;
}

static void take_step(struct scene *scene, uint8_t step)
{
    struct worker *worker = &scene->workers[step % WORKERS];
    struct session *session = &worker->sessions[step / WORKERS % SESSIONS];

    worker->zone.table.locker.patience = 1;
    worker->zone.table.locker.impatient_at = worker->zone.table.locker.acquired;
    switch (next_byte(scene->in) % 16) {
    case 0:
        end_session(session, FB_TRY_SERVED);
        break;
    case 1:
        end_try(session, FB_TRY_SERVED);
        break;
    case 2:
    case 3:
        end_try(session, FB_TRY_FAILED);
        break;
    case 4:
        end_try(session, FB_TRY_UNUSED);
        break;
    case 5:
        go_on(scene, session);
        break;
    case 6:
    case 7:
        replace(worker);
        break;
    case 8:
        say(worker);
        break;
    case 9:
        check_peer(worker);
        break;
    case 10:
        pass_time(scene);
        break;
    case 11:
        replace_worker(scene, step % WORKERS);
        break;
    case 12:
        read_status(worker);
        break;
    case 13:
        damage(scene);
        break;
    default:
        choose(worker, session);
    }
}

/* ---- What holds ---- */

/* How many tries and checks of the worker have the peer. */
static unsigned users_of(const struct worker *worker, const struct peer *peer, unsigned *tries)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SESSIONS; i++)
        n += worker->sessions[i].choice.peer == peer;
    *tries = n;
    for (unsigned i = 0; i < PROBES; i++)
        n += worker->probes[i] != NULL && worker->probes[i]->peer == peer;
    return n;
}

/* Counts the worker's tries of peers with the entry, also of a peer that has left the list. */
static uint32_t tries_of(const struct worker *worker, uint32_t entry)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < SESSIONS; i++) {
        const struct peer *peer = worker->sessions[i].choice.peer;

        n += peer != NULL && peer->zone != NULL && peer->entry == entry;
    }
    return n;
}

static void check_worker(const struct worker *worker)
{
    const struct peers *peers = worker->upstream.peers;

    for (unsigned i = 0; i < peers->n; i++) {
        const struct peer *peer = peers->list[i];
        unsigned tries, users = users_of(worker, peer, &tries);
        uint32_t limit = peer->server->max_conns;

        require(peer->refs == users + 1, "each user has a reference");
        if (peer->zone == NULL)
            require(peer_conns(peer) == tries, "a worker's tries are counted");
        if (limit > 0 && !worker->scene->damaged)
            require(peer_conns(peer) <= limit, "max_conns is kept");
    }
    for (uint32_t i = 0; worker->scene->zone != NULL && i < worker->zone.n; i++) {
        const struct upstream_zone *zone = &worker->zone;
        uint32_t all = 0;

        for (unsigned other = 0; other < WORKERS; other++)
            all += tries_of(&worker->scene->workers[other], i);
        require((uint32_t)shm_metrics_total(zone->metrics, &zone->rows_shape, i) == all,
            "all tries are counted");
    }
}

/* ---- The scene ---- */

static void make_targets(struct scene *scene)
{
    for (unsigned i = 0; i < countof(scene->targets); i++) {
        char text[32];

        snprintf(text, sizeof(text), "127.0.0.%u:80", i + 1);
        require(target_parse(text, false, &scene->targets[i]) == NULL, "an address");
    }
}

static void open_zone(struct scene *scene)
{
    scene->zone = upstream_zone_declare(
        &scene->zones, scene->arena, "zone", ENTRIES * sizeof(struct upstream_zone_entry));
    require(scene->zone != NULL && zones_open(&scene->zones, NULL, &scene->log) == 0, "no zone");
}

static void close_scene(struct scene *scene)
{
    for (unsigned i = 0; i < WORKERS; i++)
        end_worker(&scene->workers[i]);
    for (uint32_t i = 0; scene->zone != NULL && i < ENTRIES; i++)
        require(shm_metrics_total(zone_memory(scene->zone->rows), &scene->zone->rows_shape, i) == 0,
            "nobody uses the zone");
    require(worker_pieces() == 0, "no memory is left");
    zones_close(&scene->zones);
    arena_destroy(&scene->arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = { data, data + size };
    struct scene *scene = calloc(1, sizeof(*scene));

    require(scene != NULL, "no memory");
    scene->in = &in;
    scene->arena = arena_create();
    require(scene->arena != NULL, "no memory");
    scene->balancer = next_byte(&in) % 5;
    scene->flags = next_byte(&in);
    scene->now_ms = 1 + (uint64_t)scene->flags * 1000;
    log_init(&scene->log, NULL, 0);
    zones_init(&scene->zones);
    make_targets(scene);
    if ((scene->flags & HAS_ZONE) != 0)
        open_zone(scene);
    for (unsigned i = 0; i < WORKERS; i++)
        start_worker(scene, i);
    while (in.p < in.end) {
        take_step(scene, next_byte(&in));
        for (unsigned i = 0; i < WORKERS; i++)
            check_worker(&scene->workers[i]);
    }
    close_scene(scene);
    free(scene);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and replaces the lists of peers, and keeps the peers' numbers. */
#include "upstream/peers.h"

#include "base/compiler.h"
#include "base/memory.h"
#include "event/loop.h"
#include "upstream/balancer.h"
#include "upstream/zone.h"

#include <errno.h>
#include <string.h>

/* A new time is 1 part in TIME_PARTS of an average. */
#define TIME_PARTS 16

static struct upstream_place place_of_peer(const struct peers *peers, const struct peer *peer)
{
    return (struct upstream_place) {
        .upstream = peers->upstream->name,
        .server = peer->server->name,
        .address = peer->target.text,
    };
}

/* Gives the peer a state in the zone, or a private state where the zone is full. */
static void join_zone(const struct peers *peers, struct peer *peer)
{
    struct upstream_zone *zone = peers->upstream->zone;
    const struct upstream_place place = place_of_peer(peers, peer);
    struct peer_state *state =
        upstream_zone_join(zone, &place, peers->upstreams->loop->clock.mono_ms, &peer->entry);

    if (state == NULL) {
        log_write(peers->upstreams->log, LEVEL_ERROR, 0,
            "zone \"%s\" is full: each worker has its own state of server \"%s\", %s, of upstream "
            "\"%s\"",
            zone->name, place.server, place.address, place.upstream);
        return;
    }
    peer->state = state;
    peer->zone = zone;
    peer->conns = &zone->row[peer->entry];
}

/* Works out whether the configuration or the operator has the peer get no sessions, and whether
 * checks may. */
static void apply_operator(const struct peers *peers, struct peer *peer)
{
    const struct upstream_server *server = peer->server;
    enum upstream_operator said = UPSTREAM_AUTO;
    uint64_t since_ms = 0;

    if (peers->upstream->zone != NULL) {
        const struct upstream_place place = place_of_peer(peers, peer);

        said = upstream_operator_said(peers->upstream->zone, &place, &since_ms);
    }
    peer->is_up = said == UPSTREAM_UP;
    if (said == UPSTREAM_AUTO) {
        peer->is_off = server->down || server->drain;
        peer->drains = server->drain && !server->down;
    } else {
        peer->is_off = said != UPSTREAM_UP;
        peer->drains = said == UPSTREAM_DRAIN;
    }
    if (!peer->is_off && PEER_LOAD(peer->state->available_ms) < since_ms)
        PEER_STORE(peer->state->available_ms, since_ms);
}

static struct peer *create_peer(const struct peers *peers, const struct upstream_server *server,
    const struct peer_address *address)
{
    struct peer *peer = memory_alloc(peers->upstreams->memory, sizeof(*peer));
    uint32_t weight = address->weight != 0 ? address->weight : server->weight;

    assert(weight > 0);
    if (peer == NULL)
        return NULL;
    memset(peer, 0, sizeof(*peer));
    peer->kind = PEER_KIND;
    peer->refs = 1;
    peer->weight = weight < PEER_WEIGHT_MOST ? weight : PEER_WEIGHT_MOST;
    peer->backup = server->backup || address->backup;
    peer->server = server;
    peer->target = address->target;
    peer->state = &peer->own_state;
    peer->conns = &peer->own_conns;
    if (peers->upstream->zone != NULL)
        join_zone(peers, peer);
    apply_operator(peers, peer);
    return peer;
}

void peer_free(struct peers *peers, struct peer *peer)
{
    CHECK_KIND(peer, PEER_KIND);
    assert(peer->refs == 0 && peer->watched == 0);
    if (peer->left)
        LIST_REMOVE(peer, among_left);
    if (peer->zone != NULL)
        upstream_zone_leave(peer->zone, peer->entry);
    peer->kind = 0;
    memory_release(peers->upstreams->memory, peer);
}

/* Gives up a peer taken from a list, or made for a list. */
static void unlist_peer(struct peers *peers, struct peer *peer)
{
    if (peer->zone != NULL)
        upstream_zone_unlist(peer->zone, peer->entry);
    peer->left = true;
    LIST_INSERT_HEAD(&peers->left, peer, among_left);
    peer_release(peers, peer);
}

/* Drops the balancer's cache of the list. */
static void forget_list(struct peers *peers)
{
    const struct balancer *balancer = peers->upstream->balance.balancer;

    if (balancer != NULL && balancer->forget != NULL)
        balancer->forget(peers);
    peers->cache = NULL;
}

/* Asserts what holds of a list. */
static void check_list(const struct peers *peers)
{
    CHECK_KIND(peers, PEERS_KIND);
    assert(peers->primary_n <= peers->n && peers->choosable <= peers->n);
    for (unsigned i = 0; i < peers->n; i++) {
        const struct peer *peer = peers->list[i];

        CHECK_KIND(peer, PEER_KIND);
        assert(peer->refs > 0 && peer->index < peers->index_n && !peer->is_kept && !peer->left);
        assert(peer->backup == (i >= peers->primary_n));
        assert(peer->weight >= 1 && peer->weight <= PEER_WEIGHT_MOST);
    }
}

/* Works out what follows from the list. */
static void note_list(struct peers *peers)
{
    peers->primary_n = peers->choosable = peers->index_n = 0;
    peers->weight = 0;
    for (unsigned i = 0; i < peers->n; i++) {
        struct peer *peer = peers->list[i];

        peers->upstreams->listed(peers, peer);
        peers->primary_n += !peer->backup;
        peers->choosable += !peer->is_off;
        peers->weight += peer->weight;
        if (peer->index >= peers->index_n)
            peers->index_n = peer->index + 1;
    }
    peers->is_single = peers->n == 1 && peers->primary_n == 1;
    check_list(peers);
}

/* Makes the peers of one tier's servers with an address; -1 without memory. */
static int add_tier(struct peers *peers, bool backup)
{
    const struct upstream_server *server;

    STAILQ_FOREACH (server, &peers->upstream->servers, link) {
        struct peer_address address;
        struct peer *peer;

        if (server->target == NULL || server->backup != backup)
            continue;
        assert(peers->n < peers->upstream->server_n);
        address = (struct peer_address) { .target = *server->target };
        peer = create_peer(peers, server, &address);
        if (peer == NULL)
            return -1;
        peer->index = peers->n;
        peers->list[peers->n++] = peer;
    }
    return 0;
}

struct peers *peers_create(struct upstreams *upstreams, struct upstream *upstream)
{
    struct peers *peers = memory_alloc(upstreams->memory, sizeof(*peers));

    if (peers == NULL)
        return NULL;
    *peers = (struct peers) { .kind = PEERS_KIND, .upstreams = upstreams, .upstream = upstream };
    if (upstream->zone != NULL) {
        peers->lock = upstream_zone_lock_of(upstream->zone, upstream->name);
        peers->said = upstream_operators_version(upstream->zone);
    }
    peers->list = memory_alloc(upstreams->memory, (upstream->server_n + 1) * sizeof(*peers->list));
    if (peers->list == NULL || add_tier(peers, false) == -1 || add_tier(peers, true) == -1) {
        peers_destroy(&peers);
        return NULL;
    }
    note_list(peers);
    return peers;
}

void peers_destroy(struct peers **where)
{
    struct peers *peers = *where;
    const struct memory *memory = peers->upstreams->memory;

    CHECK_KIND(peers, PEERS_KIND);
    forget_list(peers);
    for (unsigned i = 0; i < peers->n; i++) {
        assert(peers->list[i]->refs == 1);
        unlist_peer(peers, peers->list[i]);
    }
    assert(LIST_EMPTY(&peers->left));
    memory_release(memory, peers->list);
    peers->kind = 0;
    memory_release(memory, peers);
    *where = NULL;
}

/* The new peers of a server, some kept from before. */
struct replacement {
    const struct upstream_server *server;
    struct peer **peers;
    unsigned n;
};

/* Returns the server's peer of the address, unless already kept for an equal address. */
static struct peer *find_peer(const struct peers *peers, const struct upstream_server *server,
    const struct peer_address *address)
{
    for (unsigned i = 0; i < peers->n; i++) {
        struct peer *peer = peers->list[i];

        if (peer->server == server && !peer->is_kept &&
            peer->backup == (server->backup || address->backup) &&
            strcmp(peer->target.text, address->target.text) == 0)
            return peer;
    }
    return NULL;
}

/* Undoes collect_peers(). */
static void abandon_replacement(struct peers *peers, struct replacement *replacement)
{
    for (unsigned i = 0; i < replacement->n; i++)
        if (replacement->peers[i]->is_kept)
            replacement->peers[i]->is_kept = false;
        else
            unlist_peer(peers, replacement->peers[i]);
    memory_release(peers->upstreams->memory, replacement->peers);
}

static int collect_peers(struct peers *peers, const struct peer_address *addresses, unsigned n,
    struct replacement *replacement)
{
    const struct memory *memory = peers->upstreams->memory;

    replacement->peers = memory_alloc(memory, (n + 1) * sizeof(*replacement->peers));
    if (replacement->peers == NULL)
        return -1;
    for (unsigned i = 0; i < n; i++) {
        struct peer *peer = find_peer(peers, replacement->server, &addresses[i]);

        if (peer != NULL)
            peer->is_kept = true;
        else
            peer = create_peer(peers, replacement->server, &addresses[i]);
        if (peer == NULL) {
            abandon_replacement(peers, replacement);
            return -1;
        }
        replacement->peers[replacement->n++] = peer;
    }
    return 0;
}

/* Appends the peers of a tier, in the order of servers; old[*at] is the next of the list before. */
static unsigned merge_tier(const struct peers *peers, const struct replacement *replacement,
    bool backup, unsigned *at, struct peer **list)
{
    const struct upstream_server *server;
    unsigned n = 0;

    STAILQ_FOREACH (server, &peers->upstream->servers, link) {
        while (*at < peers->n && peers->list[*at]->server == server &&
               peers->list[*at]->backup == backup) {
            if (server != replacement->server)
                list[n++] = peers->list[*at];
            ++*at;
        }
        for (unsigned i = 0; server == replacement->server && i < replacement->n; i++)
            if (replacement->peers[i]->backup == backup)
                list[n++] = replacement->peers[i];
    }
    return n;
}

/* Gives new peers a free index, and the version of the new list; -1 without memory. */
static int number_new(
    struct peers *peers, struct peer **list, unsigned n, const struct replacement *replacement)
{
    const struct memory *memory = peers->upstreams->memory;
    bool *used = memory_alloc(memory, (n + 1) * sizeof(*used));
    unsigned next = 0;

    if (used == NULL)
        return -1;
    memset(used, 0, (n + 1) * sizeof(*used));
    for (unsigned i = 0; i < n; i++)
        if ((list[i]->server != replacement->server || list[i]->is_kept) && list[i]->index < n)
            used[list[i]->index] = true;
    for (unsigned i = 0; i < replacement->n; i++) {
        if (replacement->peers[i]->is_kept)
            continue;
        while (used[next])
            next++;
        assert(next < n);
        replacement->peers[i]->index = next++;
        replacement->peers[i]->born = peers->version + 1;
    }
    memory_release(memory, used);
    return 0;
}

/* Gives up the server's peers that do not stay. */
static void release_old(struct peers *peers, const struct upstream_server *server)
{
    for (unsigned i = 0; i < peers->n; i++) {
        struct peer *peer = peers->list[i];

        if (peer->server == server && !peer->is_kept)
            unlist_peer(peers, peer);
    }
}

int peers_replace(struct peers *peers, const struct upstream_server *server,
    const struct peer_address *addresses, unsigned n)
{
    const struct memory *memory = peers->upstreams->memory;
    struct replacement replacement = { .server = server };
    struct peer **list;
    unsigned at = 0, list_n;

    CHECK_KIND(peers, PEERS_KIND);
    assert(server != NULL && (addresses != NULL || n == 0));
    if (collect_peers(peers, addresses, n, &replacement) == -1)
        return -1;
    list = memory_alloc(memory, (peers->n + n + 1) * sizeof(*list));
    if (list == NULL) {
        abandon_replacement(peers, &replacement);
        return -1;
    }
    list_n = merge_tier(peers, &replacement, false, &at, list);
    list_n += merge_tier(peers, &replacement, true, &at, list + list_n);
    assert(at == peers->n && list_n <= peers->n + n);
    if (number_new(peers, list, list_n, &replacement) == -1) {
        abandon_replacement(peers, &replacement);
        memory_release(memory, list);
        return -1;
    }
    forget_list(peers);
    release_old(peers, server);
    for (unsigned i = 0; i < replacement.n; i++)
        replacement.peers[i]->is_kept = false;
    memory_release(memory, replacement.peers);
    memory_release(memory, peers->list);
    peers->list = list;
    peers->n = list_n;
    peers->version++;
    note_list(peers);
    return 0;
}

void peers_apply_operator(struct peers *peers)
{
    uint32_t version = upstream_operators_version(peers->upstream->zone);

    CHECK_KIND(peers, PEERS_KIND);
    if (likely(version == peers->said))
        return;
    peers->said = version;
    for (unsigned i = 0; i < peers->n; i++)
        apply_operator(peers, peers->list[i]);
    peers->version++; /* sessions count the peers left to try anew */
    note_list(peers);
}

void peers_set_health(struct peers *peers, struct peer *peer, enum peer_health health)
{
    uint32_t before = PEER_LOAD(peer->state->health);

    CHECK_KIND(peer, PEER_KIND);
    assert(health <= PEER_HEALTH_BAD);
    PEER_STORE(peer->state->health, health);
    if (before == PEER_HEALTH_BAD && health < PEER_HEALTH_CHECKING)
        PEER_STORE(peer->state->available_ms, peers->upstreams->loop->clock.mono_ms);
}

uint32_t peer_conns(const struct peer *peer)
{
    if (peer->zone != NULL)
        return upstream_zone_conns(peer->zone, peer->entry);
    return (uint32_t)((uint64_t)PEER_LOAD(*peer->conns) & UINT32_MAX);
}

uint32_t peer_time(const struct peer *peer, enum upstream_time time)
{
    assert(time <= UPSTREAM_TIME_LAST_BYTE);
    return PEER_LOAD(peer->state->times[time]);
}

void peer_note_time(struct peer *peer, enum upstream_time time, uint64_t ms)
{
    _Atomic uint32_t *average = &peer->state->times[time];
    uint32_t most = UINT32_MAX / PEER_TIME_UNIT, before = PEER_LOAD(*average);
    uint64_t sample = (ms < most ? ms : most) * PEER_TIME_UNIT, after = sample;

    assert(time <= UPSTREAM_TIME_LAST_BYTE);
    if (before != 0)
        after = ((uint64_t)before * (TIME_PARTS - 1) + sample) / TIME_PARTS;
    PEER_STORE(*average, after != 0 ? (uint32_t)after : 1);
}

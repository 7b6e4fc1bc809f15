/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes and replaces the lists of peers, and keeps the peers' numbers. */
#include "upstream/peers.h"

#include "base/compiler.h"
#include "base/memory.h"
#include "event/loop.h"
#include "upstream/balancer.h"
#include "upstream/zone_entry.h"

#include <errno.h>
#include <string.h>

/* A new time is 1 part in TIME_PARTS of an average. */
#define TIME_PARTS 16
/* The index of a peer until the new list is in force. */
#define NO_INDEX UINT32_MAX

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

/* Works out whether configuration or operator bar sessions, and whether checks may. */
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
    peer->index = NO_INDEX;
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

/* A list in the making. */
struct new_list {
    const struct upstream_server *server; /* gets new addresses; NULL: all get their own */
    const struct peer_address *addresses;
    unsigned address_n;
    struct peer **list;
    unsigned n;
    unsigned old; /* the next of the list before */
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

/* Adds the server's peer of the address, kept or created, if it is of the tier; -1 without
 * memory. */
static int add_peer(struct peers *peers, struct new_list *new, const struct upstream_server *server,
    const struct peer_address *address, bool backup)
{
    struct peer *peer;

    if ((server->backup || address->backup) != backup)
        return 0;
    peer = find_peer(peers, server, address);
    if (peer != NULL)
        peer->is_kept = true;
    else if ((peer = create_peer(peers, server, address)) == NULL)
        return -1;
    new->list[new->n++] = peer;
    return 0;
}

/* Adds the peers of a tier, in the order of servers; -1 without memory. */
static int add_tier(struct peers *peers, struct new_list *new, bool backup)
{
    const struct upstream_server *server;

    STAILQ_FOREACH (server, &peers->upstream->servers, link) {
        while (new->old < peers->n && peers->list[new->old]->server == server &&
               peers->list[new->old]->backup == backup) {
            if (server != new->server)
                new->list[new->n++] = peers->list[new->old];
            new->old++;
        }
        if (new->server == NULL && server->target != NULL) {
            const struct peer_address own = { .target = *server->target };

            if (add_peer(peers, new, server, &own, backup) == -1)
                return -1;
        }
        for (unsigned i = 0; server == new->server &&i < new->address_n; i++)
            if (add_peer(peers, new, server, &new->addresses[i], backup) == -1)
                return -1;
    }
    return 0;
}

/* Gives new peers a free index, and the version of the new list. */
static void number_new(const struct peers *peers, const struct new_list *new, bool *used)
{
    unsigned next = 0;

    memset(used, 0, new->n * sizeof(*used));
    for (unsigned i = 0; i < new->n; i++)
        if (new->list[i]->index < new->n)
            used[new->list[i]->index] = true;
    for (unsigned i = 0; i < new->n; i++) {
        struct peer *peer = new->list[i];

        if (peer->index != NO_INDEX)
            continue;
        while (used[next])
            next++;
        assert(next < new->n);
        peer->index = next++;
        peer->born = peers->version + 1;
    }
}

/* Puts a list in force where the server, or all (NULL), has the addresses; -1 without memory. */
static int replace_list(struct peers *peers, const struct upstream_server *server,
    const struct peer_address *addresses, unsigned n)
{
    const struct memory *memory = peers->upstreams->memory;
    struct new_list new = { .server = server, .addresses = addresses, .address_n = n };
    bool *used = memory_alloc(memory, (peers->n + n + 1) * sizeof(*used)), ok;

    new.list = memory_alloc(memory, (peers->n + n + 1) * sizeof(*new.list));
    ok = used != NULL && new.list != NULL &&add_tier(peers, &new, false) == 0 &&
         add_tier(peers, &new, true) == 0;
    assert(!ok || (new.old == peers->n &&new.n <= peers->n + n));
    if (ok) {
        number_new(peers, &new, used);
        forget_list(peers);
    }
    for (unsigned i = 0; ok && i < peers->n; i++)
        if (peers->list[i]->server == server && !peers->list[i]->is_kept)
            unlist_peer(peers, peers->list[i]);
    for (unsigned i = 0; i < new.n; i++) {
        new.list[i]->is_kept = false;
        if (new.list[i]->index == NO_INDEX) /* the list is given up */
            unlist_peer(peers, new.list[i]);
    }
    memory_release(memory, used);
    memory_release(memory, ok ? peers->list : new.list);
    if (!ok)
        return -1;
    peers->list = new.list;
    peers->n = new.n;
    peers->version++;
    note_list(peers);
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
    if (replace_list(peers, NULL, NULL, upstream->server_n) == -1)
        peers_destroy(&peers);
    return peers;
}

int peers_replace(struct peers *peers, const struct upstream_server *server,
    const struct peer_address *addresses, unsigned n)
{
    CHECK_KIND(peers, PEERS_KIND);
    assert(server != NULL && (addresses != NULL || n == 0));
    return replace_list(peers, server, addresses, n);
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

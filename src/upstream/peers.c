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
    const struct fb_target *target, const struct resolve_found *found)
{
    struct peer *peer = memory_alloc(peers->upstreams->memory, sizeof(*peer));
    uint32_t weight = found->weight != 0 ? found->weight : server->weight;

    assert(weight > 0);
    if (peer == NULL)
        return NULL;
    memset(peer, 0, sizeof(*peer));
    peer->kind = PEER_KIND;
    peer->refs = 1;
    peer->index = NO_INDEX;
    peer->weight = weight < PEER_WEIGHT_MOST ? weight : PEER_WEIGHT_MOST;
    peer->backup = server->backup || found->backup;
    peer->server = server;
    peer->target = *target;
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
    const struct resolve_found *addresses;
    size_t address_n;
    struct peer **list;
    unsigned n;
    unsigned old; /* the next of the list before */
};

/* Adds a peer of the tier for the server's address, kept or created; -1 without memory. */
static int add_peer(struct peers *peers, struct new_list *made,
    const struct upstream_server *server, const struct resolve_found *found, bool backup)
{
    struct fb_target target = { .address = found->address };
    struct peer *peer = NULL;

    if ((server->backup || found->backup) != backup)
        return 0;
    if (made->server == NULL)
        target = *server->target;
    else
        address_format(&found->address, true, target.text);
    for (unsigned i = 0; i < peers->n && peer == NULL; i++)
        if (peers->list[i]->server == server && !peers->list[i]->is_kept &&
            peers->list[i]->backup == backup &&
            strcmp(peers->list[i]->target.text, target.text) == 0)
            peer = peers->list[i];
    if (peer != NULL)
        peer->is_kept = true;
    else if ((peer = create_peer(peers, server, &target, found)) == NULL)
        return -1;
    made->list[made->n++] = peer;
    return 0;
}

/* Adds the peers of a tier, in the order of servers; -1 without memory. */
static int add_tier(struct peers *peers, struct new_list *made, bool backup)
{
    const struct upstream_server *server;

    STAILQ_FOREACH (server, &peers->upstream->servers, link) {
        while (made->old < peers->n && peers->list[made->old]->server == server &&
               peers->list[made->old]->backup == backup) {
            if (server != made->server)
                made->list[made->n++] = peers->list[made->old];
            made->old++;
        }
        if (made->server == NULL && server->target != NULL &&
            add_peer(peers, made, server, &(struct resolve_found) { .weight = 0 }, backup) == -1)
            return -1;
        for (size_t i = 0; server == made->server && i < made->address_n; i++)
            if (add_peer(peers, made, server, &made->addresses[i], backup) == -1)
                return -1;
    }
    return 0;
}

/* Gives new peers a free index, and the version of the new list. */
static void number_new(const struct peers *peers, const struct new_list *made, bool *used)
{
    unsigned next = 0;

    memset(used, 0, made->n * sizeof(*used));
    for (unsigned i = 0; i < made->n; i++)
        if (made->list[i]->index < made->n)
            used[made->list[i]->index] = true;
    for (unsigned i = 0; i < made->n; i++) {
        struct peer *peer = made->list[i];

        if (peer->index != NO_INDEX)
            continue;
        while (used[next])
            next++;
        assert(next < made->n);
        peer->index = next++;
        peer->born = peers->version + 1;
    }
}

/* Puts a list in force where the server, or all (NULL), has the addresses; -1 without memory. */
static int replace_list(struct peers *peers, const struct upstream_server *server,
    const struct resolve_found *addresses, size_t n)
{
    const struct memory *memory = peers->upstreams->memory;
    struct new_list made = { .server = server, .addresses = addresses, .address_n = n };
    bool *used = memory_alloc(memory, (peers->n + n + 1) * sizeof(*used)), ok;

    made.list = memory_alloc(memory, (peers->n + n + 1) * sizeof(*made.list));
    ok = used != NULL && made.list != NULL && add_tier(peers, &made, false) == 0 &&
         add_tier(peers, &made, true) == 0;
    assert(!ok || (made.old == peers->n && made.n <= peers->n + n));
    if (ok) {
        number_new(peers, &made, used);
        forget_list(peers);
    }
    for (unsigned i = 0; ok && i < peers->n; i++)
        if (peers->list[i]->server == server && !peers->list[i]->is_kept)
            unlist_peer(peers, peers->list[i]);
    for (unsigned i = 0; i < made.n; i++) {
        made.list[i]->is_kept = false;
        if (made.list[i]->index == NO_INDEX) /* the list is given up */
            unlist_peer(peers, made.list[i]);
    }
    memory_release(memory, used);
    memory_release(memory, ok ? peers->list : made.list);
    if (!ok)
        return -1;
    peers->list = made.list;
    peers->n = made.n;
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
    const struct resolve_found *addresses, size_t n)
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
    const struct upstream_zone *zone = peer->zone;
    int64_t conns = zone != NULL ? shm_metrics_total(zone->metrics, &zone->rows_shape, peer->entry)
                                 : PEER_LOAD(*peer->conns);

    return (uint32_t)((uint64_t)conns & UINT32_MAX);
}

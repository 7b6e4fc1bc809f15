/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds peers out of use. Verdicts of checks have no version number, so every peer is looked at. */
#include "upstream/drop.h"

#include "upstream/peers.h"
#include "upstream/refresh.h"

#include <string.h>

/* Returns the address's peer in the present list; NULL: the name has lost the address. */
static const struct peer *find_present(const struct peers *peers, const struct peer *peer)
{
    if (!peer->left)
        return peer;
    for (unsigned i = 0; i < peers->n; i++)
        if (peers->list[i]->server == peer->server &&
            strcmp(peers->list[i]->target.text, peer->target.text) == 0)
            return peers->list[i];
    return NULL;
}

/* Returns why the peer's sessions are to end; NULL: they go on, also before a first check. */
static const char *why_out(const struct peers *peers, const struct peer *peer)
{
    const struct peer *present = find_present(peers, peer);

    if (present == NULL)
        return "has left the addresses of its name";
    if (present->is_off)
        return present->drains ? NULL : "is down";
    return present->server->is_checked && !present->is_up &&
                   PEER_LOAD(present->state->health) == PEER_HEALTH_BAD
               ? "is unhealthy"
               : NULL;
}

/* Whether the peer has tries to end. */
static bool look_at_peer(const struct peers *peers, struct peer *peer)
{
    const struct upstreams *upstreams = peers->upstreams;
    const char *why = peer->watched > 0 ? why_out(peers, peer) : NULL;

    CHECK_KIND(peer, PEER_KIND);
    assert(peer->watched <= peers->watched);
    if (why == NULL) {
        peer->out_ms = 0;
        return false;
    }
    if (peer->out_ms != 0)
        return true;
    peer->out_ms = upstreams->loop->clock.mono_ms;
    log_write(upstreams->log, LEVEL_NOTICE, 0,
        "server \"%s\", %s, of upstream \"%s\" %s, sessions with it that end: %u",
        peer->server->name, peer->target.text, peers->upstream->name, why, peer->watched);
    return true;
}

static bool look_in_group(struct upstreams *upstreams, struct upstream *upstream)
{
    struct peers *peers = upstream->peers;
    struct peer *peer;
    bool out = false;

    if (upstream->refreshes != NULL)
        refresh_group(upstreams, upstream);
    if (upstream->zone != NULL)
        peers_apply_operator(peers);
    for (unsigned i = 0; i < peers->n; i++)
        out |= look_at_peer(peers, peers->list[i]);
    LIST_FOREACH (peer, &peers->left, among_left)
        out |= look_at_peer(peers, peer);
    return out;
}

enum drop_found drop_look(struct upstreams *upstreams)
{
    enum drop_found found = DROP_NONE;
    struct upstream *upstream;

    STAILQ_FOREACH (upstream, upstreams->list, link) {
        if (upstream->peers->watched == 0)
            continue;
        if (look_in_group(upstreams, upstream))
            found = DROP_OUT;
        else if (found == DROP_NONE)
            found = DROP_WATCHED;
    }
    return found;
}

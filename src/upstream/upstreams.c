/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the groups of a configuration in a worker, which makes the peers of each, and closes them
 * when no session is left. */
#include "upstream/upstreams.h"

#include "base/log.h"
#include "base/memory.h"
#include "upstream/peers.h"

#include <errno.h>

static struct peers *create_peers(const struct memory *memory, struct upstream *upstream)
{
    struct peers *peers = memory_alloc(memory, sizeof(*peers));
    const struct upstream_server *server;

    if (peers == NULL)
        return NULL;
    *peers = (struct peers) { .upstream = upstream };
    peers->list = memory_alloc(memory, (upstream->server_n + 1) * sizeof(*peers->list));
    if (peers->list == NULL) {
        memory_release(memory, peers);
        return NULL;
    }
    STAILQ_FOREACH (server, &upstream->servers, link) {
        if (server->target == NULL)
            continue;
        assert(peers->n < upstream->server_n);
        peers->list[peers->n] = (struct peer) {
            .kind = PEER_KIND, .target = *server->target, .server = server, .index = peers->n
        };
        peers->n++;
    }
    return peers;
}

int upstreams_open(struct upstreams *upstreams)
{
    struct upstream *upstream;

    STAILQ_FOREACH (upstream, upstreams->list, link) {
        CHECK_KIND(upstream, UPSTREAM_KIND);
        assert(upstream->peers == NULL);
        upstream->peers = create_peers(upstreams->memory, upstream);
        if (upstream->peers == NULL) {
            log_write(upstreams->log, LEVEL_EMERG, errno, "no memory for the upstreams");
            upstreams_close(upstreams);
            return -1;
        }
    }
    return 0;
}

void upstreams_close(struct upstreams *upstreams)
{
    struct upstream *upstream;

    if (upstreams->list == NULL)
        return;
    STAILQ_FOREACH (upstream, upstreams->list, link) {
        if (upstream->peers == NULL)
            continue;
        memory_release(upstreams->memory, upstream->peers->list);
        memory_release(upstreams->memory, upstream->peers);
        upstream->peers = NULL;
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the groups of a configuration in a worker, and closes the groups without sessions. */
#include "upstream/upstreams.h"

#include "base/log.h"
#include "upstream/addresses.h"
#include "upstream/queue.h"
#include "upstream/refresh.h"
#include "upstream/resolve.h"
#include "upstream/zone.h"

#include <errno.h>

/* Finds the worker's numbers of the group's tries. */
static void open_stats(const struct upstreams *upstreams, struct upstream *upstream)
{
    struct upstream_server *server;

    if (upstreams->stats == NULL)
        return;
    if (upstream->queue > 0)
        upstream->waits.own =
            stats_of_slot(upstreams->stats, upstreams->id.slot, upstream->waits.entry);
    STAILQ_FOREACH (server, &upstream->servers, link)
        server->stats.own =
            stats_of_slot(upstreams->stats, upstreams->id.slot, server->stats.entry);
}

int upstreams_open_group(struct upstreams *upstreams, struct upstream *upstream)
{
    struct upstream_zone *zone = upstream->zone;

    CHECK_KIND(upstream, UPSTREAM_KIND);
    assert(upstream->peers == NULL && upstream->waiting == NULL);
    if (zone != NULL && zone->header == NULL &&
        upstream_zone_open(zone, upstreams->memory, upstreams->id) == -1)
        return -1;
    open_stats(upstreams, upstream);
    upstream->peers = peers_create(upstreams, upstream);
    if (upstream->peers == NULL)
        return -1;
    if ((upstream->is_of_session ? resolve_open(upstreams, upstream)
                                 : refresh_open(upstreams, upstream)) == 0) {
        /* an address that never changes */
        upstream->peers->is_plain = upstream->is_single && upstream->peers->n == 1 &&
                                    STAILQ_FIRST(&upstream->servers)->target != NULL;
        return 0;
    }
    peers_destroy(&upstream->peers);
    return -1;
}

void upstreams_close_group(struct upstream *upstream)
{
    resolve_close(upstream);
    if (upstream->peers == NULL)
        return;
    refresh_close(upstream);
    queue_forget(upstream);
    peers_destroy(&upstream->peers);
}

static int no_memory(struct upstreams *upstreams)
{
    log_write(upstreams->log, LEVEL_EMERG, errno, "no memory for the upstreams");
    upstreams_close(upstreams);
    return -1;
}

int upstreams_open(struct upstreams *upstreams)
{
    struct upstream *upstream;

    upstreams->names_due.expired = refresh_expired;
    upstreams->listed = health_begin;
    STAILQ_FOREACH (upstream, upstreams->list, link)
        if (upstreams_open_group(upstreams, upstream) == -1)
            return no_memory(upstreams);
    return 0;
}

int upstreams_ask(struct upstreams *upstreams)
{
    struct upstream *upstream;

    if (upstreams->addresses == NULL)
        return 0;
    upstreams->writer = memory_alloc(upstreams->memory, sizeof(*upstreams->writer));
    if (upstreams->writer == NULL)
        return no_memory(upstreams);
    *upstreams->writer = (struct addresses_writer) { .zone = upstreams->addresses };
    upstreams->published_changes = addresses_changes(upstreams->addresses);
    STAILQ_FOREACH (upstream, upstreams->list, link)
        if (resolve_open(upstreams, upstream) == -1)
            return no_memory(upstreams);
    return 0;
}

void upstreams_close(struct upstreams *upstreams)
{
    struct upstream *upstream;

    if (upstreams->list == NULL)
        return;
    assert(upstreams->memory != NULL);
    health_close(upstreams);
    STAILQ_FOREACH (upstream, upstreams->list, link)
        upstreams_close_group(upstream);
    STAILQ_FOREACH (upstream, upstreams->list, link)
        if (upstream->zone != NULL)
            upstream_zone_close(upstream->zone, upstreams->memory);
    timer_del(upstreams->loop, &upstreams->names_due);
    memory_release(upstreams->memory, upstreams->writer);
    upstreams->writer = NULL;
}

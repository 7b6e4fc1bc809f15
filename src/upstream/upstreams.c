/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the groups of a configuration in a worker, which makes the peers of each, and closes them
 * when no session is left. */
#include "upstream/upstreams.h"

#include "base/log.h"
#include "upstream/health.h"
#include "upstream/peers.h"
#include "upstream/zone.h"

#include <errno.h>

/* Makes the peers of a group; -1 with errno. */
static int open_group(struct upstreams *upstreams, struct upstream *upstream)
{
    struct upstream_zone *zone = upstream->zone;

    CHECK_KIND(upstream, UPSTREAM_KIND);
    assert(upstream->peers == NULL);
    if (zone != NULL && zone->header == NULL &&
        upstream_zone_open(zone, upstreams->memory, upstreams->id) == -1)
        return -1;
    upstream->peers = peers_create(upstreams, upstream);
    return upstream->peers != NULL ? 0 : -1;
}

int upstreams_open(struct upstreams *upstreams)
{
    struct upstream *upstream;

    STAILQ_FOREACH (upstream, upstreams->list, link)
        if (open_group(upstreams, upstream) == -1) {
            log_write(upstreams->log, LEVEL_EMERG, errno, "no memory for the upstreams");
            upstreams_close(upstreams);
            return -1;
        }
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
        if (upstream->peers != NULL)
            peers_destroy(&upstream->peers);
    STAILQ_FOREACH (upstream, upstreams->list, link)
        if (upstream->zone != NULL)
            upstream_zone_close(upstream->zone, upstreams->memory);
}

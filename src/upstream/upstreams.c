/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the groups of a configuration in a worker, which makes the peers of each, and closes them
 * when no session is left. */
#include "upstream/upstreams.h"

#include "base/log.h"
#include "upstream/health.h"
#include "upstream/peers.h"

#include <errno.h>

int upstreams_open(struct upstreams *upstreams)
{
    struct upstream *upstream;

    STAILQ_FOREACH (upstream, upstreams->list, link) {
        CHECK_KIND(upstream, UPSTREAM_KIND);
        assert(upstream->peers == NULL);
        upstream->peers = peers_create(upstreams, upstream);
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
    health_close(upstreams);
    STAILQ_FOREACH (upstream, upstreams->list, link)
        if (upstream->peers != NULL)
            peers_destroy(&upstream->peers);
}

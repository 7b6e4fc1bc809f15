/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on the metrics of a protocol. A worker writes its own row alone; totals are
 * summed over the rows of all workers. */
#include "sdk/handle.h"

#include <assert.h>

static_assert((int)FB_COUNTER == (int)SHM_COUNTER, "kinds are the shared memory's");
static_assert((int)FB_GAUGE == (int)SHM_GAUGE, "kinds are the shared memory's");

void fb_metric_add(fb_conn *conn, uint32_t metric, int64_t by)
{
    shm_row *row;

    if (!SDK_VALID(conn) || metric >= session_server_of(conn)->protocol->metric_n)
        return;
    row = sdk_protocol_of(conn)->row;
    assert(row != NULL);
    shm_metric_add(&row[metric], by);
}

int64_t fb_metric_total(const fb_conn *conn, uint32_t metric)
{
    const struct server *server = SDK_VALID(conn) ? session_server_of(conn) : NULL;

    if (server == NULL || metric >= server->protocol->metric_n)
        return 0;
    assert(server->metrics != NULL);
    return shm_metrics_total(zone_memory(server->metrics), server->metrics->shape, metric);
}

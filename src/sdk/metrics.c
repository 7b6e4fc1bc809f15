/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's counts: the metrics of a protocol, and the statistics of the whole daemon. A worker
 * writes nothing but its row and its line of shared memory; totals are sums over all workers, ended
 * workers included. */
#include "sdk/handle.h"

#include <assert.h>
#include <string.h>

static_assert((int)FB_COUNTER == (int)SHM_COUNTER, "kinds are the shared memory's");
static_assert((int)FB_GAUGE == (int)SHM_GAUGE, "kinds are the shared memory's");

void fb_metric_add(fb_conn *conn, uint32_t metric, int64_t by)
{
    shm_row *row;

    if (!SDK_VALID(conn) || metric >= session_server_of(conn)->protocol->metric_n)
        return;
    row = worker_protocol_of(conn)->row;
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

/* ---- Statistics ---- */

void fb_count_request(fb_conn *conn)
{
    if (!SDK_VALID(conn))
        return;
    counters_add(conn->net->counters, COUNTER_REQUESTS, 1);
}

void fb_get_statistics(fb_worker *worker, fb_statistics *out)
{
    uint64_t n[COUNTERS], busy;
    fb_statistics all = { .size = out->size };

    assert(worker_of(worker)->stream.shared != NULL);
    shared_totals(worker_of(worker)->stream.shared, n);
    busy = n[COUNTER_READING] + n[COUNTER_WRITING];
    all.accepts = n[COUNTER_ACCEPTS];
    all.handled = n[COUNTER_HANDLED];
    all.requests = n[COUNTER_REQUESTS];
    all.active = n[COUNTER_ACTIVE];
    all.reading = n[COUNTER_READING];
    all.writing = n[COUNTER_WRITING];
    /* other workers go on counting during the read */
    all.waiting = n[COUNTER_ACTIVE] > busy ? n[COUNTER_ACTIVE] - busy : 0;
    memcpy(out, &all, out->size < sizeof(all) ? out->size : sizeof(all));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's statistics of the whole daemon: a connection counts its requests in its worker's line
 * of shared memory, and totals are summed over all workers, those that have ended included. */
#include "sdk/handle.h"

#include <assert.h>
#include <string.h>

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
    /* other workers go on counting while we read */
    all.waiting = n[COUNTER_ACTIVE] > busy ? n[COUNTER_ACTIVE] - busy : 0;
    memcpy(out, &all, out->size < sizeof(all) ? out->size : sizeof(all));
}

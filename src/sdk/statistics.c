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
    assert(conn->net->counters != NULL);
    fb_count(conn->net->counters, FB_REQUESTS, 1);
}

void fb_get_statistics(fb_worker *worker, fb_statistics *out)
{
    uint64_t n[FB_COUNTERS], busy;
    fb_statistics all = { .size = out->size };

    assert(worker->stream.shared != NULL);
    fb_shared_totals(worker->stream.shared, n);
    busy = n[FB_READING] + n[FB_WRITING];
    all.accepts = n[FB_ACCEPTS];
    all.handled = n[FB_HANDLED];
    all.requests = n[FB_REQUESTS];
    all.active = n[FB_ACTIVE];
    all.reading = n[FB_READING];
    all.writing = n[FB_WRITING];
    /* other workers go on counting while we read */
    all.waiting = n[FB_ACTIVE] > busy ? n[FB_ACTIVE] - busy : 0;
    memcpy(out, &all, out->size < sizeof(all) ? out->size : sizeof(all));
}

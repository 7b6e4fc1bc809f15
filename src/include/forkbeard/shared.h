/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics, maps, the log and statistics, shared by all workers. Part of <forkbeard/forkbeard.h>,
 * with the same rules. */
#pragma once

#include <forkbeard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What all workers share ---- */

/* Adds to a metric, given by its index in the protocol's `metrics`. */
FB_SDK void fb_metric_add(fb_conn *conn, uint32_t metric, int64_t by);
/* Returns the sum of a metric over all workers. */
FB_SDK int64_t fb_metric_total(const fb_conn *conn, uint32_t metric);

/* Every call sees the changes of all workers whole or not at all, even when a worker was killed in
 * the middle. fb_map_get() fills *item. fb_map_set() sets a value for `ttl` ms; 0: for ever. Keys
 * and values are copied. */
FB_SDK fb_map_status fb_map_get(fb_worker *worker, fb_map *map, fb_bytes key, fb_item *item);
FB_SDK fb_map_status fb_map_set(
    fb_worker *worker, fb_map *map, fb_bytes key, fb_bytes value, uint64_t ttl);
/* Sets a value only if the key still has the version; with 0, only if the key is absent. */
FB_SDK fb_map_status fb_map_replace(
    fb_worker *worker, fb_map *map, fb_bytes key, uint64_t version, fb_bytes value, uint64_t ttl);
/* Adds to an int64_t value, 0 if the key is absent, and stores the sum in *sum unless NULL. */
FB_SDK fb_map_status fb_map_add(
    fb_worker *worker, fb_map *map, fb_bytes key, int64_t by, int64_t *sum);
FB_SDK fb_map_status fb_map_delete(fb_worker *worker, fb_map *map, fb_bytes key);
/* Deletes a key only if it still has the version. Returns FB_MAP_OK, FB_MAP_ABSENT or
 * FB_MAP_CHANGED. Since API 4. */
FB_SDK fb_map_status fb_map_remove(fb_worker *worker, fb_map *map, fb_bytes key, uint64_t version);
/* Appends bytes to the value of a key, and sets its `ttl`; an absent key is set. Returns
 * FB_MAP_TOO_LARGE, and changes nothing, if the whole would exceed value_max. Since API 4. */
FB_SDK fb_map_status fb_map_append(
    fb_worker *worker, fb_map *map, fb_bytes key, fb_bytes bytes, uint64_t ttl);
/* Copies the key behind the cursor into *key, its value into *item, and advances the cursor.
 * Returns FB_MAP_OK; FB_MAP_MORE, and copies nothing, if the next thousands of places had no key;
 * FB_MAP_ABSENT at the end, with the cursor at the beginning again. Keys present during the whole
 * walk are met exactly once, in spite of changes meanwhile; expired keys are left out. The caller
 * sets `value` and `room` of both items. Since API 4. */
FB_SDK fb_map_status fb_map_next(
    fb_worker *worker, fb_map *map, fb_map_cursor *cursor, fb_item *key, fb_item *item);
/* Asks for `map_changed` of the protocol's worker_ops at each change of the map from now on, by any
 * worker, or for no more. The changes of a key come in order, and never within a call. Returns 0;
 * or -1 without memory or without `map_changed`. Since API 4. */
FB_SDK int fb_map_watch(fb_worker *worker, fb_map *map, int on);
/* Returns the number of keys, perhaps with some expired keys. */
FB_SDK uint64_t fb_map_count(const fb_map *map);

/* ---- Log and statistics ---- */

/* Write a line to the error log; `format` is as for printf. The line of a connection ends with its
 * client and server. The line of the master is for conf_accepted and conf_gone. */
FB_SDK void fb_conn_logf(fb_conn *conn, fb_log_level level, const char *format, ...)
    FB_SDK_PRINTF(3, 4);
FB_SDK void fb_worker_logf(fb_worker *worker, fb_log_level level, const char *format, ...)
    FB_SDK_PRINTF(3, 4);
FB_SDK void fb_master_logf(fb_master *master, fb_log_level level, const char *format, ...)
    FB_SDK_PRINTF(3, 4);

/* Counts one request served in the daemon's statistics. */
FB_SDK void fb_count_request(fb_conn *conn);

/* The daemon's statistics over all workers; counts include ended workers. */
typedef struct fb_statistics {
    size_t size;                                /* in: sizeof(fb_statistics) */
    uint64_t accepts, handled, requests;        /* since the daemon's start */
    uint64_t active, reading, writing, waiting; /* clients' connections now */
} fb_statistics;

/* Fills *out, whose `size` the caller has set. */
FB_SDK void fb_get_statistics(fb_worker *worker, fb_statistics *out);

#ifdef __cplusplus
}
#endif

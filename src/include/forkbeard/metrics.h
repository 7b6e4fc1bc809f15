/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's numbers, one sample after the other, for protocols such as `status_page`. Part of
 * <forkbeard/forkbeard.h>, with the same rules. Since API 4.
 *
 * The calls are functions of a table, the interface "metrics" of version 1, from fb_interface(). */
#pragma once

#include <forkbeard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fb_sample_kind {
    FB_SAMPLE_COUNTER,   /* only grows, also over reloads and upgrades */
    FB_SAMPLE_GAUGE,     /* a number now */
    FB_SAMPLE_HISTOGRAM, /* times, and how many */
} fb_sample_kind;

/* A label of a sample: both are UTF-8 or bytes of the configuration, of any length. */
typedef struct fb_label {
    const char *name, *value;
} fb_label;

#define FB_LABELS_MAX 4u
#define FB_SAMPLE_BUCKETS 28u

#define FB_ROW_MAX 96u

/* A number, or the numbers of times. Text is lent until the next call. */
typedef struct fb_sample {
    size_t size;      /* in: sizeof(fb_sample) */
    const char *name; /* the family's, with one pointer for all samples */
    const char *help; /* a sentence without a full stop */
    const char *unit; /* "bytes", "seconds"; NULL: a plain number */
    fb_sample_kind kind;
    const char *thing; /* what has the number: "daemon", "workers", "protocols", "listens",
                        * "servers" or "queues", with one pointer for all samples */
    uint32_t label_n;
    uint32_t key_n; /* labels that name the thing; a further label names a part, such as a cause */
    fb_label labels[FB_LABELS_MAX];
    int64_t value; /* of counters and gauges; of "seconds" it is ms */
    /* of histograms: how many times were below 1 ms, below 2 ms, below 4 ms ...; the last has all
     * longer ones, too */
    uint64_t buckets[FB_SAMPLE_BUCKETS];
    uint64_t sum; /* of the times, in ms */
} fb_sample;

/* How far a walk has come, by samples or by rows; all zero at the beginning. */
typedef struct fb_sample_cursor {
    uint32_t family, entry, part;
} fb_sample_cursor;

/* The interface "metrics", version 1. Later versions of Forkbeard only append calls, to be used
 * where `size` includes them. */
typedef struct fb_metrics {
    size_t size; /* bytes of this table */

    /* Fills *sample, whose `size` the caller has set, with the sample behind the cursor, and
     * advances the cursor. Samples of a family come one after the other. A walk may go on in a
     * later callback; no sample comes twice, and new samples may be missed. Numbers are sums over
     * all workers, dead workers included, as of the call. Returns 1; or 0 at the end, and the
     * cursor is at the beginning again. */
    int (*next)(fb_worker *worker, fb_sample_cursor *cursor, fb_sample *sample);
    /* Does as next() does, with all samples of a thing: a worker, a listen and so on. There is room
     * for FB_ROW_MAX of them, the first of which has its `size` set. Returns how many there are; or
     * 0 at the end. */
    uint32_t (*next_row)(fb_worker *worker, fb_sample_cursor *cursor, fb_sample *samples);
} fb_metrics;

#ifdef __cplusplus
}
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits in shared memory: numbers of sessions of a key in all workers, and their rate. A key's
 * sessions are the sum of counts, one a worker, changed by the worker alone: a dead worker's count
 * is 0, so that the sum is exact at once when the master has noted a death, without a walk. Keys
 * are kept as a hash of 128 bits.
 *
 * Any worker may write anywhere into the memory: values read there are checked, never asserted. A
 * worker has its counts in private memory too. At the first visit to a shard, after a death, and
 * after a repair the worker compares the shard with the private counts, and mends differences. A
 * sum is taken after the caller's own count was published, so that a limit is not exceeded even by
 * a worker robbed of the lock. */
#pragma once

#include "shm/table.h"
#include "shm/zone.h"

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes for a key, with counts of three workers; six further workers take as many again. */
#define SHM_LIMIT_UNIT 64
/* The greatest limit. */
#define SHM_LIMIT_MOST 65535

enum shm_limit_status {
    SHM_LIMIT_OK,
    SHM_LIMIT_REACHED, /* the limit, or the rate, allows no more */
    SHM_LIMIT_FULL,    /* no memory is left for another key */
};

struct shm_limit_shape {
    uint64_t size;    /* bytes for keys; at least a unit */
    uint64_t text[2]; /* text hash: keys from a new text need a new zone */
};

/* The process's sessions of a key. */
struct shm_limit_count {
    RB_ENTRY(shm_limit_count) node;
    uint64_t key[2];
    uint32_t n;
    uint32_t seen; /* the number of the last look to find the count in memory */
};

RB_HEAD(shm_limit_counts, shm_limit_count);

struct shm_limit_mended {
    uint32_t rebuilt;   /* shards that were damaged */
    uint32_t recounted; /* own counts unequal to the written count */
    uint32_t taken;     /* locks whose holders stood still */
};

/* A shard as this process knows it. */
struct shm_limit_visit {
    bool visited;
    bool unsure;       /* the lock was lost during a call */
    uint32_t deaths;   /* workers' deaths at the last look */
    uint32_t rebuilds; /* the shard's rebuilds at the last look */
    uint64_t sweep_ns; /* no key can be given up before */
};

/* A process's handle: the layout, derived from the shape, and private counts. */
struct shm_limit {
    struct table table; /* entry_n: units of each shard */
    struct shm_limit_header *header;
    struct shm_limit_shard *shards;
    uint64_t now_ns;
    uint64_t rate_most_ns; /* the farthest that a rate of the zone lets an account be ahead */
    uint32_t look;         /* number of the last one */
    struct shm_limit_counts counts;
    struct shm_limit_visit visits[TABLE_SHARDS_MAX];
    struct shm_limit_mended mended;
};

/* A session every interval_ns, and a burst until the account is burst_ns ahead of the time. */
struct shm_limit_rate {
    uint64_t interval_ns, burst_ns;
};

extern const struct zone_kind shm_limit_kind;

/* Sets `text` by the words of a key. */
void shm_limit_set_text(struct shm_limit_shape *shape, const char *text, size_t n);
/* Makes a handle to a zone's memory of this shape; the id is the calling process's. */
void shm_limit_open(
    struct shm_limit *limit, void *memory, const struct shm_limit_shape *shape, struct slot_id id);
/* Frees the handle's private counts; the counts in the memory stay. */
void shm_limit_close(struct shm_limit *limit);

/* Times are nanoseconds of a clock common to all processes, such as CLOCK_MONOTONIC. */

/* Counts a session, to be given back, unless `most` are there: OK; REACHED; FULL. */
enum shm_limit_status shm_limit_take(struct shm_limit *limit, const void *key, size_t n,
    uint64_t now_ns, uint32_t most, struct shm_limit_count **count);
/* Gives one session of a count back. */
void shm_limit_give(struct shm_limit *limit, struct shm_limit_count *count, uint64_t now_ns);
/* Notes a session in the account, unless too early: OK; REACHED; FULL. */
enum shm_limit_status shm_limit_pass(struct shm_limit *limit, const void *key, size_t n,
    uint64_t now_ns, const struct shm_limit_rate *rate);

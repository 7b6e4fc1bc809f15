/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of a server: how many sessions of a key there are at once, and how fast they come, over
 * all workers. The phase before access asks, and the end of a session gives the counts back. */
#pragma once

#include "shm/limit.h"
#include "text/template.h"

struct conf_word;
struct cycle;
struct stream;

/* Bytes of a key; longer keys are not counted. */
#define LIMIT_CONN_KEY_MAX 255

/* A `limit_conn_zone`. */
struct limit_zone {
    struct limit_zone *next;
    const char *name;
    const struct conf_word *used_at; /* place of the first rule with the zone's name; NULL: no
                                      * rule */
    const struct template *key;      /* NULL: it was not declared */
    const char *key_text;            /* the key as it was written */
    struct zone *zone;               /* open in a worker */
    struct shm_limit_shape shape;
    struct shm_limit *handle;       /* the worker's, once it is open */
    uint64_t rate_most_ns;          /* the farthest that a rule lets an account be ahead */
    struct shm_limit_mended logged; /* how many mendings the log was told of */
    uint64_t logged_ms;
};

/* A `limit_conn`, or a `limit_conn_rate`. */
struct limit_rule {
    struct limit_rule *next;
    struct limit_zone *zone;
    uint32_t most; /* sessions at once; 0: it has a rate */
    struct shm_limit_rate rate;
};

/* The feature's struct of a server. */
struct limit_values {
    struct limit_rule *conns, *rates; /* NULL: no rules */
    int64_t dry_run;
    int64_t log_level; /* from 0 on: info, notice, warn, error */
};

/* The feature's struct of the configuration. */
struct limit_conf {
    struct limit_zone *zones;
};

/* A zone and key for which a session was counted. */
struct limit_held {
    struct limit_held *next;
    struct limit_zone *zone;
    struct value key;
    struct shm_limit_count *count; /* NULL: its coming, in an account */
};

/* Values of $limit_conn_status. */
enum limit_status { LIMIT_NONE, LIMIT_PASSED, LIMIT_REJECTED, LIMIT_REJECTED_DRY_RUN };

/* Start and end what a worker has: handles of all limits among the open zones. */
int limit_conn_open(struct stream *stream, const struct cycle *cycle, struct slot_id slot);
void limit_conn_close(struct stream *stream, const struct cycle *cycle);
/* Runs in the phase before access, with a server's struct limit_values. */
unsigned limit_conn_run(struct fb_conn *conn, const void *settings);

/* $limit_conn_status */
extern const struct variable_row limit_conn_variables[];

/* SPDX-License-Identifier: BSD-2-Clause */
/* Health checks of the peers of a group: due times, claims and outcomes. The worker that advances
 * the time of the next check makes the due check: of all workers with the shared state a single
 * worker makes a check, and a live worker makes a dead worker's next check. Never connects: a
 * protocol does, and reports the outcome.
 *
 * Invariant: a probe holds its peer from health_claim() to health_end(). The numbers of a state
 * may be memory that workers write: input, and never asserted. */
#pragma once

#include "base/check.h"
#include "upstream/upstreams.h"

#include <netinet/in.h>

/* Different checks that a group may have. */
#define HEALTH_CHECKS_MOST 4

/* Time beyond the time-out after which a check is taken for lost. */
#define HEALTH_SLACK_MS 1000
/* Delay until a check that could not be made is due again. */
#define HEALTH_RETRY_MS 1000

#define PROBE_KIND KIND('P', 'r', 'o', 'b')

struct peer;
struct peers;

/* A check of a group's servers. */
struct upstream_check {
    struct upstream_check *next;
    unsigned index;            /* among the group's, below HEALTH_CHECKS_MOST */
    int64_t interval, jitter;  /* ms */
    int64_t timeout;           /* ms, of a single check */
    uint32_t fails, passes;    /* in a row, until a server is unhealthy, or healthy again */
    in_port_t port;            /* in host order; 0: the server's */
    bool mandatory;            /* a server gets no session before the first check has passed */
    bool persistent;           /* ... but keeps its health over a reload */
    const char *match_name;    /* or NULL */
    const struct match *match; /* NULL: to be connected to is enough */
};

/* A protocol's directive, as it is used. */
struct fb_health_check {
    struct upstream *upstream;
    const struct upstream_check *check;
};

/* Knowledge of a peer by a check. All zero: none. */
struct health_state {
    _Atomic uint64_t id;                          /* names the check; 0: none; even: begins */
    _Atomic uint32_t generation;                  /* the configuration's that began the state */
    _Atomic uint64_t next_ms;                     /* when the next one is due, monotonic */
    _Atomic uint64_t last_ms;                     /* when the last one has ended; 0: never */
    _Atomic uint32_t health;                      /* enum peer_health */
    _Atomic uint32_t passes, misses;              /* in a row */
    _Atomic uint64_t checks, failures, unhealthy; /* ever, and how often it became so */
};

/* A running check. */
struct health_probe {
    unsigned kind;  /* PROBE_KIND */
    fb_probe shown; /* to the protocol */
    LIST_ENTRY(health_probe) link;
    struct upstream *upstream;
    struct peer *peer;
    const struct upstream_check *check;
    struct fb_target target;
    uint64_t due_ms;   /* when the next check is */
    uint64_t lease_ms; /* when a different worker makes the check, unless the probe ends */
    bool is_early;     /* begun before the daemon's own listeners are open */
};

/* Begins the state of a new peer, once for all workers. */
void health_begin(struct peers *peers, struct peer *peer);
/* Claims a check that is due, and sets *wait to 0; NULL: none is, and perhaps in *wait ms. */
struct health_probe *health_claim(struct upstreams *upstreams, struct upstream *upstream,
    const struct upstream_check *check, uint64_t *wait);
/* Ends the probe; the protocol's step `doing` failed with an errno, or 0. */
void health_end(struct upstreams *upstreams, struct health_probe *probe, fb_probe_end how,
    const char *doing, int error);
/* Ends the checks that protocols have left. */
void health_close(struct upstreams *upstreams);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The choice of a server for a session, and what becomes of it: a try ends as served, failed or
 * unused, and its peer is marked.
 *
 * Invariant: a choice has a peer from choice_next() until choice_end(). */
#pragma once

#include "upstream/upstreams.h"

#include <forkbeard/balancer.h>

#define CHOICE_KIND KIND('C', 'h', 'o', 'i')

struct peer;

/* A session's, in its memory. */
struct choice {
    unsigned kind; /* CHOICE_KIND */
    struct upstreams *upstreams;
    struct upstream *upstream;
    struct peer *peer;                    /* of the try that runs; NULL: none */
    fb_bytes key;                         /* of `hash`, in the session's memory */
    uint32_t left;                        /* servers that may still be tried */
    uint64_t began_ms;                    /* when the try began, monotonic */
    uint64_t connected_ms, first_byte_ms; /* times of the try; FB_NO_TIME: none */
};

/* Begins the choice of a session, in memory that outlives it. */
void choice_begin(struct choice *choice, struct upstreams *upstreams, struct upstream *upstream);
/* Chooses a peer: SERVER; NONE, after an error-log line; WAITS: tell() of the upstreams follows. */
fb_choice choice_next(struct choice *choice);
/* Ends the try, or the wait. */
void choice_end(struct choice *choice, fb_try_end how);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The groups of servers in a worker: the peers, the waits, and the wake-up of sessions. */
#pragma once

#include "base/log_line.h"
#include "event/source.h"
#include "names/names.h"
#include "shm/slot.h"
#include "upstream/upstream.h"

#include <forkbeard/balancer.h>

struct choice;
struct peer;

struct upstreams {
    struct upstream_list *list;
    struct loop *loop;
    struct log *log;
    const struct memory *memory;
    struct slot_id id; /* the worker's, for zones */
    void *stats;       /* memory of the statistics of tries; NULL: tries are not counted */
    /* Resumes a session after a wait by queue_wait(), from the loop. */
    void (*resume)(struct choice *choice, fb_choice status);
    /* Logs a line of the session with the upstream's name. */
    void (*report)(
        struct choice *choice, enum log_level level, const char *upstream, const char *message);
    uint32_t (*random)(struct upstreams *upstreams, uint32_t below);
    /* Begins the checks of a peer in a list. */
    void (*listed)(struct peers *peers, struct peer *peer);
    uint32_t generation;                          /* changes with every reload */
    LIST_HEAD(, health_probe) probes;             /* health checks that run (health.h) */
    struct names *names;                          /* NULL: there are no resolvers */
    const struct names_setting *system;           /* the resolver of who has none */
    void (*resumed)(struct upstreams *upstreams); /* after some sessions were */
    const struct zone
        *addresses;         /* the table of addresses (addresses.h); NULL: no server has a name */
    struct timer names_due; /* the next look for a first answer */
    /* set in a process that asks for names */
    struct addresses_writer *writer;
    uint32_t published_changes;                     /* addresses_changes() as of the latest round */
    void (*published)(struct upstreams *upstreams); /* after something was written down */

    /* queue.c */
    struct source_ops queue_ops; /* the source's, which lead to the struct */
    struct source *source;       /* stands for queues due soon; NULL: none */
    TAILQ_HEAD(, queue) due;
};

/* Opens the groups; -1 after an emerg line, with nothing left to undo. */
int upstreams_open(struct upstreams *upstreams);
/* Begins to ask for the names of all groups; returns as above. The groups may be open. */
int upstreams_ask(struct upstreams *upstreams);
void upstreams_close(struct upstreams *upstreams);
/* Opens one group, such as a session's; -1 without memory, with nothing left to undo. */
int upstreams_open_group(struct upstreams *upstreams, struct upstream *upstream);
/* Closes a group without tries or waits of sessions; leaves a closed group alone. */
void upstreams_close_group(struct upstream *upstream);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The groups of servers in a worker: the peers of each, what they wait for, and how sessions are
 * told. */
#pragma once

#include "base/log_level.h"
#include "event/source.h"
#include "names/names.h"
#include "shm/slot.h"
#include "upstream/upstream.h"

#include <forkbeard/balancer.h>

struct choice;
struct health_probe;
struct known_writer;

struct upstreams {
    struct upstream_list *list;
    struct loop *loop;
    struct log *log;
    const struct memory *memory;
    struct slot_id id; /* the worker's, for zones */
    /* Tells a session what queue_choose() has made wait; runs its protocol, from the loop. */
    void (*tell)(struct choice *choice, fb_choice status);
    /* Logs a line of the session that names this upstream. */
    void (*report)(
        struct choice *choice, enum log_level level, const char *upstream, const char *message);
    uint32_t (*random)(struct upstreams *upstreams, uint32_t below);
    uint32_t generation;                       /* changes with each reload */
    LIST_HEAD(, health_probe) probes;          /* health checks that run (health.h) */
    struct names *names;                       /* NULL: there are no resolvers */
    const struct names_setting *system;        /* the resolver of who has none */
    void (*told)(struct upstreams *upstreams); /* after some were told */
    const struct zone *known; /* addresses of names (known.h); NULL: no server has one */
    struct timer names_due;   /* the next look for a first answer */
    /* set in a process that asks for names */
    struct known_writer *writer;
    uint32_t told_changes;                          /* known_changes() as of the latest round */
    void (*published)(struct upstreams *upstreams); /* after something was written down */

    /* queue.c */
    struct source_ops queue_ops; /* the source's: by them it leads here */
    struct source *source;       /* stands for the queues that are looked at soon; NULL: none */
    TAILQ_HEAD(, queue) due;
};

/* Opens the groups; -1 after an emerg line, with nothing left to undo. */
int upstreams_open(struct upstreams *upstreams);
/* Begins to ask for the names of all groups; returns as above. The groups may be open. */
int upstreams_ask(struct upstreams *upstreams);
void upstreams_close(struct upstreams *upstreams);
/* Opens one group, such as a session's; -1 without memory, with nothing left to undo. */
int upstreams_open_group(struct upstreams *upstreams, struct upstream *upstream);
/* No session has a try, or waits; a group that is not open is left alone. */
void upstreams_close_group(struct upstream *upstream);

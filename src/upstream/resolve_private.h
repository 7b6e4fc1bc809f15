/* SPDX-License-Identifier: BSD-2-Clause */
/* A server's name, and the round of questions about it that runs. For the files of resolve.c
 * alone. */
#pragma once

#include "upstream/addresses.h"
#include "upstream/resolve.h"
#include "upstream/resolve_set.h"

#define RESOLVE_KIND KIND('R', 's', 'l', 'U')

/* A host whose addresses a round asks for. */
struct target {
    struct resolve *resolve;
    struct fb_resolution *resolution; /* NULL: it is not asked for, or was answered */
    uint16_t priority, weight;        /* the SRV record's */
    in_port_t port;
    char name[MESSAGE_NAME];
};

struct resolve {
    unsigned kind;
    struct upstreams *upstreams;
    struct upstream *upstream;
    const struct upstream_server *server;
    struct resolve *next; /* in the order of the group's servers */
    struct timer timer;   /* the next round's, or until the entry is claimed again */
    struct addresses_key key;
    uint32_t
        entry; /* claimed; ADDRESSES_NONE: a different process asks, or the name is a session's */
    struct resolve_set *found;
    bool has_answered; /* a round has ended */
    unsigned failures; /* rounds in a row that have found nothing, or in which a question failed */
    const char *why;   /* reason of the latest round's failure; NULL: none */
    char why_name[MESSAGE_NAME];
    const char *logged; /* the failure that the error log knows of; NULL: none */
    /* the round that runs */
    struct fb_resolution *service; /* NULL: no SRV records are asked for now */
    struct target *targets;
    unsigned target_n, waits; /* targets, and targets without an answer */
    struct resolve_set *draft;
    bool has_failed; /* a question has: earlier addresses may still hold */
    uint32_t ttl;    /* the least of all answers, in seconds */
};

static inline const struct memory *resolve_memory(const struct resolve *resolve)
{
    return resolve->upstreams->memory;
}

/* Notes that the round has not found all. */
void resolve_note_failure(struct resolve *resolve, const char *name, const char *why);
/* Notes a lack of memory. */
void resolve_note_memory(struct resolve *resolve);
/* Ends the round, all of whose questions have ended. */
void resolve_end_round(struct resolve *resolve);
void resolve_free_round(struct resolve *resolve);

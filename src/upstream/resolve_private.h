/* SPDX-License-Identifier: BSD-2-Clause */
/* A server's name, and the running round of questions. For the files of resolve.c alone. */
#pragma once

#include "upstream/addresses.h"
#include "upstream/resolve.h"
#include "upstream/resolve_set.h"

#define RESOLVE_KIND KIND('R', 's', 'l', 'U')

/* A host with addresses asked for by a round. */
struct target {
    struct resolve *resolve;
    struct fb_resolution *resolution; /* NULL: no question runs */
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
    unsigned failures; /* rounds in a row without addresses, or with a failed question */
    const char *why;   /* reason of the latest round's failure; NULL: none */
    char why_name[MESSAGE_NAME];
    const char *logged; /* the failure known to the error log; NULL: none */
    /* the running round */
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

/* Notes an incomplete round. */
void resolve_note_failure(struct resolve *resolve, const char *name, const char *why);
/* Notes a lack of memory. */
void resolve_note_memory(struct resolve *resolve);
/* Ends the round after its last question. */
void resolve_end_round(struct resolve *resolve);
void resolve_free_round(struct resolve *resolve);

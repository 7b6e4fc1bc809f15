/* SPDX-License-Identifier: BSD-2-Clause */
/* The choice of a server for a session, and what becomes of it: a try ends as served, failed or
 * unused, and its peer is marked.
 *
 * Invariant: a choice has a peer, and a reference to it, from choice_next() until choice_end(). */
#pragma once

#include "event/loop.h"
#include "upstream/peers.h"
#include "upstream/upstreams.h"

#include <forkbeard/balancer.h>

#define CHOICE_KIND KIND('C', 'h', 'o', 'i')

/* A session's, in its memory. */
struct waiter;

struct choice {
    unsigned kind; /* CHOICE_KIND */
    uint32_t left; /* servers that may still be tried */
    struct upstreams *upstreams;
    struct upstream *upstream;
    struct peer *peer;                    /* tried now; NULL: none */
    struct waiter *waiter;                /* queue.c's, while it waits; else NULL */
    fb_bytes key;                         /* text of `hash`, in the session's memory */
    uint64_t began_ms;                    /* when the try began, monotonic */
    uint64_t connected_ms, first_byte_ms; /* times of the try; FB_NO_TIME: none */

    /* the peers that were tried, by their indexes in this version of the list */
    uint64_t tried;
    uint64_t *more_tried; /* bits from index 64 on */
    uint32_t more_n;      /* words of these */
    uint32_t version;
    bool backup; /* the backups' turn has come */

    bool is_running;   /* least_time: its peer has it among the tries that run */
    uint32_t hash;     /* hash: the sum of all that were made of the key */
    uint32_t rehashes; /* hash: how many */
    uint32_t misses;   /* hash, random: peers that could not be used */
};

/* Begins the choice of a session, in memory that outlives it. */
void choice_begin(struct choice *choice, struct upstreams *upstreams, struct upstream *upstream);
/* Chooses a peer: SERVER, NONE or NO_MEMORY. */
fb_choice choice_next(struct choice *choice);
/* Logs that no server is left. */
void choice_report_none(struct choice *choice);
/* Note times of the try: since it began. */
void choice_connected(struct choice *choice);
void choice_first_byte(struct choice *choice);
/* Adds the bytes of a connection to those of the peer, before the try ends. */
void choice_count(struct choice *choice, uint64_t sent, uint64_t received);
/* Ends the try, or the wait. */
void choice_end(struct choice *choice, fb_try_end how);

static inline uint64_t choice_now(const struct choice *choice)
{
    return choice->upstreams->loop->clock.mono_ms;
}

/* The peers whose turn it is, by their places in the list: from the first to before the end. */
static inline unsigned choice_first(const struct choice *choice)
{
    return choice->backup ? choice->upstream->peers->primary_n : 0;
}

static inline unsigned choice_end_of(const struct choice *choice)
{
    const struct peers *peers = choice->upstream->peers;

    return choice->backup ? peers->n : peers->primary_n;
}

static inline bool choice_has_tried(const struct choice *choice, const struct peer *peer)
{
    uint32_t index = peer->index;

    if (index < 64)
        return (choice->tried >> index & 1) != 0;
    index -= 64;
    return index / 64 < choice->more_n && (choice->more_tried[index / 64] >> index % 64 & 1) != 0;
}

/* Whether a balancer may choose the peer: it was not tried, is not down, has not failed and has
 * room, and its turn has come. */
static inline bool choice_may_use(const struct choice *choice, const struct peer *peer)
{
    return peer->backup == choice->backup && !choice_has_tried(choice, peer) &&
           !peer_is_down(peer) && !peer_has_failed(peer, choice_now(choice)) && !peer_is_full(peer);
}

/* Returns the weight that the peer has now by slow_start, in PEER_WEIGHT_UNITs; never 0. */
uint32_t peer_slow_weight(const struct choice *choice, const struct peer *peer);

/* Returns the weight that the peer has now, by failures and slow_start. */
static inline uint32_t peer_weight(const struct choice *choice, const struct peer *peer)
{
    uint32_t weight = peer->weight * PEER_WEIGHT_UNIT, lost = PEER_LOAD(peer->state->lost_weight);
    uint32_t slow = weight;

    if (peer->server->slow_start > 0)
        slow = peer_slow_weight(choice, peer);
    weight = lost < weight ? weight - lost : 0;
    return slow < weight ? slow : weight;
}

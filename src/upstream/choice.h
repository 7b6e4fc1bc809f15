/* SPDX-License-Identifier: BSD-2-Clause */
/* The choice of a server for a session, and the outcome: a try ends as served, failed or unused,
 * and marks the peer.
 *
 * Invariant: a choice has a peer, with a reference, from choice_next() until choice_end(). */
#pragma once

#include "event/loop.h"
#include "upstream/peers.h"
#include "upstream/upstreams.h"

#define CHOICE_KIND 0xc5u

/* A time that is not known. */
#define CHOICE_NO_TIME UINT32_MAX

/* A session waits for the address of a name, or for room in the group's `queue`. */
enum wait_reason { WAIT_FOR_NAME, WAIT_FOR_ROOM, WAIT_REASONS };

/* Parts that few choices need. */
struct choice_more {
    struct waiter *waiter;            /* queue.c's, while it waits; else NULL */
    uint32_t waited_ms[WAIT_REASONS]; /* in all; CHOICE_NO_TIME: never */
    enum wait_reason given_up;        /* whose time is over; WAIT_REASONS: none's */
    fb_bytes key;                     /* text of `hash`, in the session's memory */
    uint32_t hash;                    /* hash: the sum of all hashes made of the key */
    uint32_t rehashes;                /* hash: how many */
    uint32_t tried_n;                 /* words of `tried` */
    uint64_t *tried;                  /* bits of tried peers, from index 64 on; or NULL */
};

struct choice {
    struct upstream *upstream;
    struct peer *peer;        /* tried now; NULL: none */
    struct choice_more *more; /* made when first needed; or NULL */
    uint64_t tried;           /* peers, by indexes in the list's version */
    uint32_t version;
    uint32_t left;                        /* servers that may still be tried */
    uint32_t connected_ms, first_byte_ms; /* times of the try; CHOICE_NO_TIME: none */
    uint64_t began_ms : 48;               /* when the try began, monotonic */
    uint64_t kind : 8;                    /* CHOICE_KIND */
    uint64_t misses : 5;                  /* hash, random: unusable peers met so far */
    uint64_t backup : 1;                  /* the backups' turn has come */
    uint64_t is_running : 1;              /* least_time: counted among the peer's running tries */
    uint64_t is_watched : 1;              /* drop_look() may end the try with the peer */
};

void choice_begin(struct choice *choice, struct upstream *upstream);
/* Ends a choice without a running try, and without a wait. */
void choice_done(struct choice *choice);
/* Returns the rarely needed part, made where there is none; NULL without memory. */
struct choice_more *choice_make_more(struct choice *choice);
/* Chooses a peer: SERVER, NONE or NO_MEMORY. */
fb_choice choice_next(struct choice *choice);
/* Logs that no server is left. */
void choice_report_none(struct choice *choice);
/* Note times of the try, in ms since the choice; of the first byte once. */
void choice_connected(struct choice *choice);
void choice_first_byte(struct choice *choice);
/* Adds the try, of a group of the worker, to the watched tries (drop_look()). */
void choice_watch(struct choice *choice);
/* Counts a trouble with the peer, before the try ends. */
void choice_count_trouble(struct choice *choice, enum peer_trouble trouble);
/* Notes the end of a connection without an answer to the client's bytes. */
void choice_note_silence(struct choice *choice);
/* Ends the try, or the wait. */
void choice_end(struct choice *choice, fb_try_end how);

static inline struct upstreams *choice_upstreams(const struct choice *choice)
{
    return choice->upstream->peers->upstreams;
}

static inline uint64_t choice_now(const struct choice *choice)
{
    return choice->upstream->peers->upstreams->loop->clock.mono_ms;
}

static inline bool choice_waits(const struct choice *choice)
{
    return choice->more != NULL && choice->more->waiter != NULL;
}

/* The peers in turn, primaries or backups, by place in the list, up to before the end. */
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
    return choice->more != NULL && index / 64 < choice->more->tried_n &&
           (choice->more->tried[index / 64] >> index % 64 & 1) != 0;
}

/* Whether a balancer may choose the peer: in turn, not yet tried, neither down, failed nor full. */
static inline bool choice_may_use(const struct choice *choice, const struct peer *peer)
{
    return peer->backup == choice->backup && !choice_has_tried(choice, peer) &&
           !peer_is_down(peer) && !peer_has_failed(peer->state, peer->server, choice_now(choice)) &&
           !peer_is_full(peer);
}

/* Returns the peer's present weight by slow_start, in PEER_WEIGHT_UNITs; never 0. */
uint32_t peer_slow_weight(const struct choice *choice, const struct peer *peer);

/* Returns the peer's present weight, by failures and slow_start. */
static inline uint32_t peer_weight(const struct choice *choice, const struct peer *peer)
{
    uint32_t weight = peer->weight * PEER_WEIGHT_UNIT, lost = PEER_LOAD(peer->state->lost_weight);
    uint32_t slow = weight;

    if (peer->server->slow_start > 0)
        slow = peer_slow_weight(choice, peer);
    weight = lost < weight ? weight - lost : 0;
    return slow < weight ? slow : weight;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The peers of a group in a worker: a peer is an address of a server of the configuration, with
 * numbers and state. The list is replaced as a whole when the addresses of a name change; a kept
 * peer is in both lists, and a removed peer lasts until the end of the last try, among `left`
 * meanwhile.
 *
 * Invariants: peers of a list have different indexes; primaries stand before backups. A state
 * may be memory that any worker writes: the numbers are input, bounded here, and never asserted. */
#pragma once

#include "upstream/health.h"
#include "upstream/resolve_set.h"

#include <bsd/sys/queue.h>
#include <stdatomic.h>

#define PEER_KIND KIND('P', 'e', 'e', 'r')
#define PEERS_KIND KIND('P', 'r', 's', 's')

/* A weight of 1, in the unit of the balancers' counts, because slow_start has fractions. */
#define PEER_WEIGHT_UNIT 256u
/* Greater weights of a server make no difference. */
#define PEER_WEIGHT_MOST (UINT32_MAX / PEER_WEIGHT_UNIT)
/* A time of 1 ms, in the unit of averages. */
#define PEER_TIME_UNIT 256u

/* A word of health checks about a peer. */
enum peer_health {
    PEER_HEALTH_UNCHECKED, /* no check, or no result: the peer is used */
    PEER_HEALTH_GOOD,
    PEER_HEALTH_CHECKING, /* the first check comes before any use */
    PEER_HEALTH_BAD,
};

/* A trouble of sessions with a server, no failure by itself. */
enum peer_trouble {
    PEER_RESET,     /* an established connection was broken by the server */
    PEER_TIMED_OUT, /* no answer to the connect in time */
    PEER_REFUSED,   /* the connect */
    PEER_SLOW,      /* the first byte was late, or never came */
    PEER_TROUBLES
};

/* A word of the operator about a server. */
enum upstream_operator {
    UPSTREAM_AUTO, /* by the configuration */
    UPSTREAM_UP,   /* used, whatever `down`, `drain` and health checks say */
    UPSTREAM_DRAIN,
    UPSTREAM_DOWN,
};

/* Numbers about a peer. All zero: nothing is known. Times are the loop's monotonic ms; 0: never. */
struct peer_state {
    _Atomic int64_t current_weight; /* account of round robin */
    _Atomic uint64_t checked_ms;    /* the last failure, or the try a fail_timeout later */
    _Atomic uint64_t accessed_ms;   /* the last failure */
    _Atomic uint64_t available_ms;  /* since when the peer is usable again */
    _Atomic uint32_t fails;         /* failures that count, now */
    _Atomic uint32_t lost_weight;   /* by failures; restored choice by choice */
    _Atomic uint32_t health;        /* enum peer_health */
    _Atomic uint32_t times[3]; /* averages by enum upstream_time, in PEER_TIME_UNITs; 0: none */

    _Atomic uint64_t sessions; /* tries */
    uint64_t unused[2];        /* earlier binaries count here: the layout of zones stays */
    _Atomic uint64_t failures; /* ever */
    uint64_t unused_too;
    _Atomic uint64_t troubles[PEER_TROUBLES]; /* ever, by enum peer_trouble */

    struct health_state checks[HEALTH_CHECKS_MOST];
};

struct peer {
    unsigned kind;   /* PEER_KIND */
    uint32_t refs;   /* references of the list, and of running tries */
    uint32_t index;  /* bit of the peer among a session's tried peers */
    uint32_t born;   /* version of the list when the peer was added */
    uint32_t weight; /* 1 to PEER_WEIGHT_MOST */
    bool backup;
    bool is_kept; /* within peers_replace(): the new list has the peer, too */
    bool is_off;  /* the configuration or the operator bars sessions */
    bool drains;  /* ... and keeps the present sessions */
    bool is_up;   /* the operator lets sessions in, whatever the checks say */
    bool left;    /* no list has it any more */
    const struct upstream_server *server;
    struct peer_state *state;
    uint32_t watched; /* the worker's tries under watch of drop_look() */
    uint64_t out_ms;  /* since when watched tries are to end; 0: no end */
    LIST_ENTRY(peer) among_left;
    uint32_t running;           /* least_time: tries of the worker without a time yet */
    uint64_t running_began_ms;  /* sum of when these began */
    struct upstream_zone *zone; /* owner of the state, in this entry; NULL: the peer */
    uint32_t entry;
    _Atomic int64_t *conns; /* the low 32 bits: tries of the worker, the only writer */
    struct fb_target target;
    _Atomic int64_t own_conns; /* the peer's, where no zone has both */
    struct peer_state own_state;
};

struct peers {
    unsigned kind; /* PEERS_KIND */
    struct upstreams *upstreams;
    struct upstream *upstream;
    struct peer **list; /* primaries, then backups */
    unsigned n;
    unsigned primary_n;
    unsigned index_n;       /* every index is less */
    unsigned choosable;     /* peers that are not off: the tries of a session */
    uint32_t watched;       /* tries, of all peers */
    LIST_HEAD(, peer) left; /* peers of earlier lists */
    uint32_t version;       /* changes when the list does; it wraps */
    uint64_t weight;        /* sum of all weights */
    uint32_t lock;          /* number in the zone, if any */
    uint32_t said;          /* version of the applied operator's words */
    bool is_single;         /* no failure keeps the only peer from being used */
    bool is_plain;          /* the address of a directive: never replaced; no use of the numbers */
    void *cache;            /* the balancer's, freed by forget() */
};

/* Makes the peers of the group's addresses; NULL without memory. */
struct peers *peers_create(struct upstreams *upstreams, struct upstream *upstream);
/* No try runs. */
void peers_destroy(struct peers **peers);
/* Gives a server new addresses, copied; -1 without memory, with the old addresses kept. Equal
 * addresses get separate peers. */
int peers_replace(struct peers *peers, const struct upstream_server *server,
    const struct resolve_found *addresses, size_t n);
/* Applies the operator's words since the last call; the group has a zone. */
void peers_apply_operator(struct peers *peers);
/* Notes what checks say of a peer. */
void peers_set_health(struct peers *peers, struct peer *peer, enum peer_health health);
void peer_free(struct peers *peers, struct peer *peer);
/* Gives up a reference. */
static inline void peer_release(struct peers *peers, struct peer *peer)
{
    assert(peer->refs > 0);
    if (--peer->refs == 0)
        peer_free(peers, peer);
}

/* The running tries, of all workers with the shared state. */
uint32_t peer_conns(const struct peer *peer) NOINLINE;

#define PEER_LOAD(number) atomic_load_explicit(&(number), memory_order_relaxed)
#define PEER_STORE(number, value) atomic_store_explicit(&(number), (value), memory_order_relaxed)

/* Limit of how far ahead a worker's clock is believed, and a dead worker's times block a server. */
#define PEER_SKEW_MS 1000

/* Returns the age of a time; an impossible time is long ago. */
static inline uint64_t peer_age(uint64_t now_ms, uint64_t then_ms)
{
    if (then_ms <= now_ms)
        return now_ms - then_ms;
    return then_ms - now_ms <= PEER_SKEW_MS ? 0 : UINT64_MAX;
}

/* Whether the server's max_fails was reached within its fail_timeout. */
static inline bool peer_has_failed(
    const struct peer_state *state, const struct upstream_server *server, uint64_t now_ms)
{
    return server->max_fails > 0 && PEER_LOAD(state->fails) >= server->max_fails &&
           peer_age(now_ms, PEER_LOAD(state->checked_ms)) <= (uint64_t)server->fail_timeout;
}

/* Whether the configuration, the operator or a health check bars sessions. */
static inline bool peer_is_down(const struct peer *peer)
{
    return peer->is_off || (peer->server->is_checked && !peer->is_up &&
                               PEER_LOAD(peer->state->health) >= PEER_HEALTH_CHECKING);
}

static inline bool peer_is_full(const struct peer *peer)
{
    return peer->server->max_conns > 0 && peer_conns(peer) >= peer->server->max_conns;
}

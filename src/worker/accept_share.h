/* SPDX-License-Identifier: BSD-2-Clause */
/* The worker's share of the clients: whether it has more than the others of its generation, and who
 * of them has fewest.
 *
 * Nothing here acts. What the others say of themselves is input: a number is bounded before it is
 * counted, and a worker that has not turned when it was rung is left out until it turns. How often
 * clients may be left to another is bounded by tokens, whatever the others say. */
#pragma once

#include "base/token_bucket.h"
#include "shm/shared.h"

/* Findings about another worker, by its number. */
struct share_peer {
    uint64_t heartbeat; /* the one that was read last */
    uint32_t slot;
    bool silent; /* did not turn when it was rung, nor since */
};

struct accept_share {
    struct shared *shared;
    struct slot *own;  /* the worker's page; NULL: there are no others */
    uint32_t own_slot; /* the slot's number in this half */
    uint32_t place;    /* the worker's own, of which the generation counts */
    uint32_t most;     /* clients that any worker can have */
    struct share_peer *peers;
    unsigned peer_n; /* numbers of workers are below */
    struct token_bucket exact, rough, aside, again;
    uint32_t least;   /* clients of the worker with the fewest, when that was judged last */
    uint64_t accepts; /* total of the others, when room was looked for last */
    bool refused;     /* none of them has accepted since, though a client waited */
};

enum share_verdict {
    SHARE_FAIR,  /* others have about as many */
    SHARE_YIELD, /* above the mean: a worker that waits as well should come first */
    SHARE_ASIDE, /* the same, and the listener is to be left to the others for a while */
    SHARE_PASS,  /* too many: the one with fewest is to be woken */
};

#define SHARE_NOBODY UINT32_MAX
#define SHARE_ANY (INT32_MAX - 1) /* in place of a listener's descriptor: several */

/* Begins for the worker of this slot and place, one of `n`; -1 without memory. */
int accept_share_init(struct accept_share *share, struct shared *shared, struct slot_id id,
    uint32_t place, unsigned n);
void accept_share_done(struct accept_share *share);

/* Compares `ours`, the number of our clients, with those of others. With `yields` the workers that
 * watch a listener take turns, so that one client more is fair, and SHARE_ASIDE and then
 * SHARE_YIELD, for want of tokens, can be followed. With SHARE_PASS, *to is the worker with the
 * fewest clients. */
enum share_verdict accept_share_judge(
    struct accept_share *share, uint32_t ours, bool yields, uint64_t now, uint32_t *to);
/* The number of the worker with the fewest clients among those that take clients, or
 * SHARE_NOBODY. */
uint32_t accept_share_find_least(struct accept_share *share);
/* The one with the fewest clients among those that have room, or SHARE_NOBODY: also while it was
 * in vain to leave a client to others, and none of them has accepted any since, but for a few tries
 * a second. */
uint32_t accept_share_find_room(struct accept_share *share, uint64_t now);
/* A time later: whether it was in vain. */
void accept_share_note_refusal(struct accept_share *share);
/* A time after it was rung: leaves a worker out that has not turned. */
void accept_share_note_answer(struct accept_share *share, uint32_t number);
/* The descriptor of a listener whose clients another worker has left to us, -1 when there is no
 * more; *cursor is 0 at first. */
int accept_share_passed(const struct accept_share *share, uint32_t *cursor);
/* Publishes the listener whose clients are left to worker `to`; -1: none. */
void accept_share_publish_pass(struct accept_share *share, int fd, uint32_t to);

/* Publishes whether this worker takes clients, and has room for them. */
static inline void accept_share_publish(struct accept_share *share, enum slot_takes takes)
{
    if (share->own != NULL)
        atomic_store_explicit(&share->own->load.takes, takes, memory_order_relaxed);
}

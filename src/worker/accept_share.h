/* SPDX-License-Identifier: BSD-2-Clause */
/* The worker's share of clients, compared within its generation. Published numbers are input: each
 * is bounded before use, a worker that has not turned after a wake-up is left out until it turns,
 * and tokens bound how often clients are passed. Never acts. */
#pragma once

#include "base/token_bucket.h"
#include "shm/shared.h"

/* Findings about another worker, by its number. */
struct share_sibling {
    uint64_t heartbeat; /* latest */
    uint32_t slot;
    bool silent; /* without a turn since its wake-up */
};

struct accept_share {
    struct shared *shared;
    struct slot *own;  /* the worker's page; NULL: no siblings */
    uint32_t own_slot; /* the slot's number in this half */
    uint32_t place;    /* with the generation */
    uint32_t most;     /* clients that any worker can have */
    struct share_sibling *siblings;
    unsigned sibling_n; /* numbers of workers are below */
    struct token_bucket exact, rough, aside, again;
    uint32_t least;   /* fewest clients of a worker at the latest verdict */
    uint64_t accepts; /* siblings' total at the latest look */
    bool refused;     /* no sibling has accepted since, though a client waited */
};

enum share_verdict {
    SHARE_FAIR,  /* others have about as many */
    SHARE_YIELD, /* above the mean: a worker that waits as well should come first */
    SHARE_ASIDE, /* SHARE_YIELD, with the listener left to siblings for a while */
    SHARE_PASS,  /* too many: the worker with the fewest is to be woken */
};

#define SHARE_NOBODY UINT32_MAX
#define SHARE_ANY (INT32_MAX - 1) /* instead of a descriptor: several listeners */

/* Begins for the worker with this slot and place, among `n`; -1 without memory. */
int accept_share_init(struct accept_share *share, struct shared *shared, struct slot_id id,
    uint32_t place, unsigned n);
void accept_share_done(struct accept_share *share);

/* Compares `ours`, the number of own clients, with the siblings'. With `yields` the watchers of a
 * listener take turns: one client more is fair, and without tokens the verdict is SHARE_ASIDE or
 * SHARE_YIELD. With SHARE_PASS, *to is the worker with the fewest clients. */
enum share_verdict accept_share_judge(
    struct accept_share *share, uint32_t ours, bool yields, uint64_t now, uint32_t *to);
/* Finds the worker with the fewest clients, among workers taking clients, or SHARE_NOBODY. */
uint32_t accept_share_find_least(struct accept_share *share);
/* Finds the worker with the fewest clients among workers with room, or SHARE_NOBODY; after a
 * refusal, until siblings have accepted, only a few times a second. */
uint32_t accept_share_find_room(struct accept_share *share, uint64_t now);
/* Notes whether workers with room have refused a client. */
void accept_share_note_refusal(struct accept_share *share);
/* Notes whether a woken worker has turned; if not, the worker is left out. */
void accept_share_note_answer(struct accept_share *share, uint32_t number);
/* Finds the next listener with clients left to this worker, or -1; *cursor begins with 0. */
int accept_share_passed(const struct accept_share *share, uint32_t *cursor);
/* Publishes the listener with clients left to worker `to`; -1: none. */
void accept_share_publish_pass(struct accept_share *share, int fd, uint32_t to);

/* Publishes whether the calling worker takes clients and has room. */
static inline void accept_share_publish(struct accept_share *share, enum slot_takes takes)
{
    if (share->own != NULL)
        atomic_store_explicit(&share->own->load.takes, takes, memory_order_relaxed);
}

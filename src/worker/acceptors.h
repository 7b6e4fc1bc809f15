/* SPDX-License-Identifier: BSD-2-Clause */
/* The listeners of a worker: kind and state of each, the phase of accepting, and how workers share
 * listeners. Each enumeration has one setter, with an assertion of the legal steps. Watches exactly
 * the listeners that phase, state and accept mutex allow. Never accepts. */
#pragma once

#include "base/token_bucket.h"
#include "event/loop.h"
#include "net/listener.h"
#include "worker/accept_mutex.h"
#include "worker/accept_share.h"

struct worker;

enum acceptor_kind {
    ACCEPTOR_SHARED,  /* a socket of all workers */
    ACCEPTOR_OWN,     /* a reuseport socket of this worker */
    ACCEPTOR_SIBLING, /* a reuseport socket of another worker */
};

enum acceptor_state {
    ACCEPTOR_DORMANT, /* a sibling's socket, accepted from by the sibling alone */
    ACCEPTOR_ACTIVE,  /* watched, where the phase and the mutex allow */
    ACCEPTOR_YIELDED, /* left to other workers, until the timer `back` */
    ACCEPTOR_BROKEN,  /* was shut down: not watched until the timer `mend` */
};

/* How much the next event accepts. */
enum acceptor_batch {
    ACCEPTOR_FAIR,   /* a client, or with multi_accept some, unless siblings come first */
    ACCEPTOR_PASSED, /* clients that were left to this worker */
    ACCEPTOR_RESCAN, /* clients until the backlog is empty */
};

struct acceptor {
    struct source source; /* the first member: a slot of the loop's table */
    STAILQ_ENTRY(acceptor) link;
    struct listener *listener;
    uint32_t slots; /* slots of a client: a second for the server's connection */
    enum acceptor_kind kind;
    enum acceptor_state state;
    enum acceptor_batch batch;
    unsigned empty_n; /* events in a row without a client */
    uint64_t rejoined_ms;
};

enum accept_phase {
    ACCEPT_CLOSED,   /* the master has not let the worker accept yet */
    ACCEPT_OPEN,     /* clients are accepted */
    ACCEPT_CROWDED,  /* clients are accepted, or passed for want of a slot */
    ACCEPT_PAUSED,   /* suspended by a shortage, until the timer `resume` */
    ACCEPT_FULL,     /* suspended for want of a slot, until one is free or the timer `resume` */
    ACCEPT_RELEASED, /* the listeners are closed, for good */
};

/* Watchers of the shared listeners. */
enum accept_sharing {
    SHARING_NONE,      /* a worker without others */
    SHARING_ALL,       /* every worker; a client wakes them all */
    SHARING_MUTEX,     /* the holder of the accept mutex */
    SHARING_EXCLUSIVE, /* workers of which the kernel wakes one */
};

/* How clients are balanced. */
enum accept_balance {
    BALANCE_NONE,
    BALANCE_SLOTS,   /* accept_disabled: by the worker's free slots, without the mutex */
    BALANCE_CLIENTS, /* accept_share: by the numbers of clients */
};

/* The worker's turn as the holder of the accept mutex. */
enum accept_turn {
    TURN_NONE,     /* the shared listeners are another worker's */
    TURN_TAKEN,    /* the mutex is held; the shared listeners are not watched */
    TURN_WATCHING, /* the mutex is held, and the shared listeners are watched */
    TURN_OVER,     /* the mutex was given back, but the shared listeners are still watched */
};

/* Clients that are left to another worker. */
enum accept_passing {
    PASSING_NONE,
    PASSING_CLIENTS, /* until the timer `back` */
    PASSING_SHORT,   /* the same for want of room, from the end of the turn on */
    PASSING_REFUSED, /* left in vain: the worker may take the mutex */
};

struct acceptors {
    STAILQ_HEAD(, acceptor) list; /* empty once released */
    unsigned n;
    enum accept_phase phase;
    enum accept_sharing sharing;
    enum accept_balance balance;
    struct timer resume;
    struct timer mend;           /* when broken listeners are tried again */
    struct token_bucket reports; /* to the master, of broken listeners */
    uint32_t short_slots;        /* needed by the latest client without room */
    int short_fd;                /* listener of the latest suspension */
    uint64_t shortage_at;        /* when a shortage was logged last, ms, or 0 */
    /* turns of the accept mutex (accept_pass.c) */
    enum accept_turn turn;
    struct accept_mutex mutex; /* used with SHARING_MUTEX */
    int64_t disabled;          /* accept_disabled: turns to leave the mutex to others */
    bool was_disabled;         /* in the latest turn */
    bool invited;              /* another worker has too many clients, and has rung the bell */
    /* passed clients */
    enum accept_passing passing;
    struct accept_share share;
    uint32_t to;          /* the worker that the mutex is to be left to, or SHARE_NOBODY */
    uint32_t woken;       /* the woken worker, until the timer `back`, or SHARE_NOBODY */
    uint64_t judged_ms;   /* when the shares were compared last for the mutex */
    uint64_t accepted_ms; /* the latest accept */
    unsigned yielded_n;   /* listeners in ACCEPTOR_YIELDED */
    struct timer back;
    struct source *bell; /* wakes this worker; NULL without others */
};

#define ACCEPTORS_FOREACH(var, a)                                                                  \
    for (struct acceptor *var = STAILQ_FIRST(&(a)->list); var != NULL; var = STAILQ_NEXT(var, link))

/* Sets up the timers, and how listeners are shared. */
void acceptors_init(struct worker *worker);
void acceptors_set_phase(struct worker *worker, enum accept_phase phase);
void acceptors_set_turn(struct acceptors *accept, enum accept_turn turn);
/* Gives up the accept mutex for good: all workers watch the shared listeners. */
void acceptors_leave_mutex(struct worker *worker);
/* Watches exactly the listeners allowed by phase, turn and states. */
void acceptors_update(struct worker *worker);
/* Changes a listener's state, and watches the listener accordingly. */
void acceptor_change(struct worker *worker, struct acceptor *acceptor, enum acceptor_state state);
/* Watches a listener anew, behind all siblings. */
void acceptor_rejoin(struct worker *worker, struct acceptor *acceptor);
/* Watches all sockets of siblings, where clients may wait for room, or for a dead worker. */
void acceptors_wake_dormant(struct worker *worker);
/* Stops watching all listeners, and returns the siblings' sockets to the siblings. */
void acceptors_disarm(struct worker *worker);
/* Stops watching a listener after a shutdown(), and has the master listen again. */
void acceptor_break(struct worker *worker, struct acceptor *acceptor);
/* Replaces the listening socket with `fd`, owned by the caller. */
void acceptors_replace_socket(struct worker *worker, uint32_t number, int fd);
void acceptors_check(const struct acceptors *accept);

static inline bool acceptors_are_open(const struct acceptors *accept)
{
    return accept->phase == ACCEPT_OPEN || accept->phase == ACCEPT_CROWDED;
}

static inline bool acceptors_are_suspended(const struct acceptors *accept)
{
    return accept->phase == ACCEPT_PAUSED || accept->phase == ACCEPT_FULL;
}

static inline bool acceptors_hold_mutex(const struct acceptors *accept)
{
    return accept->turn == TURN_TAKEN || accept->turn == TURN_WATCHING;
}

/* Makes the next event accept at least so much. */
static inline void acceptor_raise_batch(struct acceptor *acceptor, enum acceptor_batch batch)
{
    if (acceptor->batch < batch)
        acceptor->batch = batch;
}

/* Whether the listener is served under the accept mutex. */
static inline bool acceptor_needs_mutex(
    const struct acceptors *accept, const struct acceptor *acceptor)
{
    return accept->sharing == SHARING_MUTEX && acceptor->kind == ACCEPTOR_SHARED;
}

/* Whether several workers watch the listener, of which the kernel wakes the first. */
static inline bool acceptor_is_exclusive(
    const struct acceptors *accept, const struct acceptor *acceptor)
{
    return accept->sharing == SHARING_EXCLUSIVE &&
           (acceptor->kind == ACCEPTOR_SHARED || accept->balance == BALANCE_CLIENTS);
}

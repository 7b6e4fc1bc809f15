/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepting: which listeners this worker watches, when it takes clients from them, and how it gives
 * the listeners up without leaving a client behind.
 *
 * Accepting has one phase, which only accept.c changes. Shared listeners are watched by all
 * workers where the kernel wakes one of them, else by the holder of the accept mutex, which is
 * never held beyond the accept queue of a turn. A listener that was shut down is left alone until
 * the master has made it listen again. */
#pragma once

#include "base/token_bucket.h"
#include "event/loop.h"
#include "net/listener.h"
#include "worker/accept_mutex.h"
#include "worker/accept_share.h"

struct worker;

/* A listening socket as this worker watches it. */
struct acceptor {
    struct source source; /* the first member: a slot of the loop's table */
    struct listener *listener;
    uint32_t slots;   /* slots that a client needs: a second one for its server's connection */
    bool own;         /* a reuseport socket, which one worker serves: no mutex needed */
    bool foreign;     /* `own` of another worker: this one stands in for it */
    bool lent;        /* `foreign` without stand-ins: another worker has left clients to us */
    bool passed;      /* the next event accepts what another worker has left to us */
    bool aside;       /* left to others, until the timer `back` */
    bool rescan;      /* the next event accepts until the backlog is empty */
    bool broken;      /* was shut down: not watched until the timer `mend` */
    unsigned empty_n; /* events in a row without a client */
};

enum accept_phase {
    ACCEPT_CLOSED,   /* the master has not let us accept yet */
    ACCEPT_OPEN,     /* clients are accepted */
    ACCEPT_PAUSED,   /* suspended by a shortage, until the timer `resume` */
    ACCEPT_FULL,     /* suspended for want of a slot, until one is free or the timer `resume` */
    ACCEPT_RELEASED, /* the listeners are closed, for good */
};

struct acceptors {
    struct acceptor **list; /* NULL before accept_init() and once released */
    unsigned n;
    enum accept_phase phase;
    bool exclusive; /* shared listeners are watched by all workers, of whom the kernel wakes one */
    bool mutex;     /* they are watched by the accept mutex's holder alone */
    bool makes_way; /* `exclusive`: accept_disabled leaves clients to others all the same */
    bool holds_mutex;     /* the accept mutex is ours, unless another worker has taken it */
    bool watches_shared;  /* the shared listeners are armed, as the mutex's holder */
    int64_t disabled;     /* accept_disabled: turns to leave the mutex to others */
    bool left;            /* was left to them in the latest turn */
    bool wakes;           /* another worker is woken when the mutex is given back */
    bool invited;         /* another worker has too many clients, and has rung */
    int short_fd;         /* the listener at which accepting was suspended last */
    uint32_t short_slots; /* that the client needed for whom there was no room last */
    uint64_t shortage_at; /* ms of the latest shortage, to log it once; 0: none */
    struct timer resume;
    struct timer mend;           /* when broken listeners are tried again */
    struct token_bucket reports; /* to the master, of broken listeners */
    struct accept_mutex turns;   /* used if `mutex` is set */
    /* clients that are left to other workers, and taken from them (accept_pass.c) */
    struct accept_share share;
    bool even;            /* clients are left to workers with fewer */
    bool stand_ins;       /* reuseport sockets are watched by all workers: the kernel wakes one */
    bool crowded;         /* crowding was published: there was no room, and none has come since */
    bool waits;           /* for another worker to take a client that has no room here */
    bool returned;        /* the mutex is ours to take: nobody has when it was left */
    uint32_t to;          /* the worker that the mutex is to be left to, or SHARE_NOBODY */
    uint32_t rung;        /* the worker that was woken, until the timer `back` */
    uint64_t judged_ms;   /* when the mutex was judged to be ours to take */
    uint64_t accepted_ms; /* when we have accepted last */
    unsigned aside_n;     /* listeners left to other workers until `back` */
    struct timer back;
    struct source *bell; /* by which other workers wake this one; NULL: there are no others */
};

/* Gets a slot for each listening socket that is ours to serve; -1 after an emerg line. */
int accept_init(struct worker *worker);
/* Begins to accept; the worker serves from now on. */
void accept_open(struct worker *worker);
/* Accepts the clients that wait, then stops watching and closes the listeners, for good. */
void accept_release(struct worker *worker);
/* Rescans every listener: accepts until its backlog is empty, because a client may be stranded. */
void accept_rescan(struct worker *worker);
/* Step 2 of a turn with the mutex: tries to take it, and watches the listeners or not. Returns how
 * long to wait: less than `timeout` where another worker holds it. */
int accept_before(struct worker *worker, int timeout);
/* The end of step 5, when this worker holds the mutex: gives it back. */
void accept_after(struct worker *worker);
/* Goes on without the accept mutex, as if it was not configured. */
void accept_leave_mutex(struct worker *worker);
/* Replaces the listening socket that has this descriptor by another, which stays the caller's. */
void accept_replace_socket(struct worker *worker, uint32_t number, int fd);

/* Asserts what holds of the listeners between two turns; worker_check() calls it. */
void acceptors_check(const struct acceptors *accept);

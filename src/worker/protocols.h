/* SPDX-License-Identifier: BSD-2-Clause */
/* The protocols in one worker: worker_state, metrics, callbacks of the worker, timers and posted
 * work. A protocol starts once, for any number of servers. */
#pragma once

#include "event/id_timers.h"
#include "shm/metrics.h"

#include <bsd/sys/queue.h>
#include <forkbeard/protocol.h>
#include <stdbool.h>

struct post;
struct source;
struct worker;

/* A protocol in a worker: the protocol's handle. */
struct fb_worker {
    struct worker *worker;
    unsigned index; /* the protocol's */
    const fb_protocol *protocol;
    void *state;             /* worker_state bytes, or NULL */
    shm_row *row;            /* the row of its metrics, or NULL */
    struct id_timers timers; /* of fb_worker_timer() */
    bool started;            /* worker_start has succeeded */
    uint64_t mark;           /* names the protocol in messages, equal in every worker */
    unsigned unanswered;     /* messages without an outcome */
};

/* The name of the protocol with an index; "unknown" where there is none. */
const char *worker_protocols_name(const struct worker *worker, unsigned index);

/* Whether the protocol has a callback of the worker. */
#define WORKER_HAS(handle, member)                                                                 \
    ((handle)->protocol->worker_ops != NULL && (handle)->protocol->worker_ops->member != NULL)

/* Whether the protocol has a callback for messages or states of workers. */
static inline bool worker_protocol_listens(const struct fb_worker *handle)
{
    return handle->started &&
           (WORKER_HAS(handle, message) || WORKER_HAS(handle, answered) ||
               WORKER_HAS(handle, worker_came) || WORKER_HAS(handle, worker_gone));
}

/* Starts the protocols; -1 after an emerg line. */
int worker_protocols_start(struct worker *worker);
/* Stops the started protocols, and frees the states. */
void worker_protocols_stop(struct worker *worker);

/* The worker has begun to drain, and closes connections after `deadline` ms; 0: never. */
void worker_protocols_drain(struct worker *worker, uint64_t deadline);

/* Whether a protocol waits for an outcome. */
bool worker_protocols_wait(const struct worker *worker);

/* The started protocol with the given mark, or NULL. */
struct fb_worker *worker_protocol_of_mark(struct worker *worker, uint64_t mark);

/* fb_worker_timer() and fb_worker_timer_cancel() */
int worker_protocol_timer(struct fb_worker *handle, uint32_t id, uint64_t ms);
void worker_protocol_timer_cancel(struct fb_worker *handle, uint32_t id);

/* Work posted for the next turn of the loop. */
struct posts {
    STAILQ_HEAD(, post) list;
    struct source *source; /* the loop's own kind; NULL before the first */
    unsigned n;            /* posted, and not run yet */
};

/* Posts work, of which n bytes are copied, as fb_post() says; -1 when there is no memory. */
int worker_protocol_post(struct fb_worker *handle,
    void (*run)(struct fb_worker *handle, void *work), const void *work, size_t n);
/* Frees the work that has not run, at the worker's end. */
void worker_protocols_unpost(struct worker *worker);

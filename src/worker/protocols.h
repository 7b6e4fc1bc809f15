/* SPDX-License-Identifier: BSD-2-Clause */
/* The protocols in one worker: worker_state, metrics, callbacks of the worker, timers, and names. A
 * protocol starts once, for any number of servers. */
#pragma once

#include "event/id_timers.h"
#include "names/names.h"
#include "shm/metrics.h"

#include <forkbeard/protocol.h>

struct worker;

/* A protocol in a worker: the protocol's handle. */
struct fb_worker {
    struct worker *worker; /* NULL: no server has the protocol */
    unsigned index;        /* the protocol's */
    const fb_protocol *protocol;
    void *state;             /* worker_state bytes, or NULL */
    shm_row *row;            /* the row of its metrics, or NULL */
    struct id_timers timers; /* of fb_worker_timer() */
    bool started;            /* worker_start has succeeded */
    uint64_t mark;           /* names the protocol in messages, equal in every worker */
    unsigned unanswered;     /* messages without an outcome */
};

#define WORKER_HAS(handle, member)                                                                 \
    ((handle)->protocol->worker_ops != NULL && (handle)->protocol->worker_ops->member != NULL)

/* Whether the protocol has a callback for messages or states of workers. */
static inline bool worker_protocol_listens(const struct fb_worker *handle)
{
    return handle->started &&
           (WORKER_HAS(handle, message) || WORKER_HAS(handle, answered) ||
               WORKER_HAS(handle, worker_came) || WORKER_HAS(handle, worker_gone));
}

/* The name of the protocol with an index; "unknown" where there is none. */
const char *worker_protocols_name(const struct worker *worker, unsigned index);
/* Starts the protocols; -1 after an emerg line. */
int worker_protocols_start(struct worker *worker);
void worker_protocols_stop(struct worker *worker);
/* The worker has begun to drain, and closes connections after `deadline` ms; 0: never. */
void worker_protocols_drain(struct worker *worker, uint64_t deadline);
/* fb_worker_timer() and fb_worker_timer_cancel() */
int worker_protocol_timer(struct fb_worker *handle, uint32_t id, uint64_t ms);
void worker_protocol_timer_cancel(struct fb_worker *handle, uint32_t id);
/* Slots of the loop for resolvers. */
unsigned worker_names_slots(const struct worker *worker);
/* Makes the resolvers, before the sandbox closes; -1 after an emerg line. */
int worker_names_open(struct worker *worker);
/* fb_resolve(), of a connection or (NULL) of the worker. */
struct fb_resolution *worker_resolve(
    struct fb_worker *handle, struct fb_conn *owner, struct names_query *query);

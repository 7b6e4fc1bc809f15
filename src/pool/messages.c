/* SPDX-License-Identifier: BSD-2-Clause */
/* The master's ends of the channels. A message is input: one that does not fit the worker's phase is
 * ignored, numbers in it are looked up and never trusted, descriptors that nobody wants are closed. */
#include "pool/pool.h"

#include "process/role.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct inbox_request {
    STAILQ_ENTRY(inbox_request) link;
    struct pool_worker *from;
    uint32_t wanted; /* incarnation, as slot_incarnation() gives it */
};

void pool_rescan(struct pool *pool, const struct pool_worker *except)
{
    struct pool_worker *worker;

    POOL_FOREACH_WORKER (worker, pool)
        if (worker->phase == POOL_WORKER_ACCEPTING && worker != except)
            pool_worker_send(worker, MESSAGE_RESCAN, 0, -1);
}

void pool_tell_gone(struct pool *pool, const struct pool_worker *gone)
{
    struct pool_worker *worker;

    assert(gone->generation->pool == pool);
    if (gone->inbox == -1) /* no worker has been given it */
        return;
    POOL_FOREACH_WORKER (worker, pool)
        if (worker != gone)
            pool_worker_send(worker, MESSAGE_PEER_GONE, slot_incarnation(gone->slot), -1);
}

static void note_request(struct pool_worker *worker, uint32_t wanted)
{
    struct inbox_request *request = malloc(sizeof(*request));

    if (request == NULL) {
        pool_worker_send(worker, MESSAGE_PEER_GONE, wanted, -1);
        return;
    }
    *request = (struct inbox_request) { .from = worker, .wanted = wanted };
    STAILQ_INSERT_TAIL(&worker->generation->pool->requests, request, link);
}

static int find_inbox(const struct pool *pool, uint32_t incarnation)
{
    const struct pool_worker *worker;

    POOL_FOREACH_WORKER (worker, pool)
        if (worker->pid > 0 && slot_incarnation(worker->slot) == incarnation)
            return worker->inbox;
    return -1;
}

/* Replies to these requests, and frees them. */
static void answer_requests(struct pool *pool, struct inbox_requests *requests)
{
    struct inbox_request *request;

    while ((request = STAILQ_FIRST(requests)) != NULL) {
        int inbox = find_inbox(pool, request->wanted);

        pool_worker_send(request->from, inbox != -1 ? MESSAGE_INBOX_OF_PEER : MESSAGE_PEER_GONE,
            request->wanted, inbox);
        STAILQ_REMOVE_HEAD(requests, link);
        free(request);
    }
}

static void handle_ready(struct pool_worker *worker)
{
    struct generation *generation = worker->generation;

    if (worker->phase != POOL_WORKER_STARTING)
        return;
    pool_worker_set_phase(worker, POOL_WORKER_READY);
    if (generation->phase != GENERATION_CLOSING)
        timers_disarm(generation->pool->timers, &worker->deadline);
    if (generation == generation->pool->serving || generation->phase == GENERATION_COMMITTED)
        pool_worker_arm(worker); /* a replacement */
}

static void handle_armed(struct pool_worker *worker)
{
    struct generation *generation = worker->generation;

    if (worker->phase < POOL_WORKER_READY)
        return;
    if (worker->phase == POOL_WORKER_READY)
        pool_worker_set_phase(worker, POOL_WORKER_ACCEPTING);
    if (generation->phase != GENERATION_CLOSING)
        timers_disarm(generation->pool->timers, &worker->deadline);
    if (generation->phase == GENERATION_DRAINING) /* a failed commit has closed its listeners */
        kill(worker->pid, SIGQUIT);
}

static void handle_released(struct pool_worker *worker)
{
    if (worker->phase == POOL_WORKER_READY || worker->phase == POOL_WORKER_ACCEPTING)
        pool_worker_set_phase(worker, POOL_WORKER_RELEASED);
}

static void take_inbox(struct pool_worker *worker, struct channel_message *message)
{
    if (worker->inbox != -1)
        return;
    worker->inbox = message->fd;
    message->fd = -1;
}

/* Returns whether the worker has come further. */
static bool handle_message(struct pool_worker *worker, struct channel_message *message)
{
    struct pool *pool = worker->generation->pool;

    switch ((enum channel_message_kind)message->kind) {
    case MESSAGE_READY:
        handle_ready(worker);
        return true;
    case MESSAGE_ACCEPTING:
        handle_armed(worker);
        return true;
    case MESSAGE_RELEASED:
        handle_released(worker);
        return true;
    case MESSAGE_RESCAN:
        pool_rescan(pool, worker);
        pool->ops->rescan(pool->host);
        return false;
    case MESSAGE_LOG_BROKEN:
        pool_note_broken_log(worker->generation, message->argument);
        return false;
    case MESSAGE_INBOX:
        take_inbox(worker, message);
        return false;
    case MESSAGE_INBOX_WANTED:
        note_request(worker, message->argument);
        return false;
    default:
        return false;
    }
}

/* Returns whether any worker has come further. */
static bool receive_all(struct pool *pool)
{
    struct pool_worker *worker;
    struct channel_message message;
    bool changed = false;

    POOL_FOREACH_WORKER (worker, pool)
        while (
            worker->channel != -1 && channel_receive(worker->channel, &message) == CHANNEL_DONE) {
            changed = handle_message(worker, &message) || changed;
            if (message.fd != -1)
                close(message.fd);
        }
    return changed;
}

void pool_receive_messages(struct pool *pool)
{
    bool changed;

    assert(role_is(ROLE_MASTER));
    assert(STAILQ_EMPTY(&pool->requests));
    changed = receive_all(pool);
    /* A worker that asks for an inbox learned of its peer after the peer had sent the inbox to us, perhaps
     * on a channel that was read before: reading all channels once more finds it. */
    while (!STAILQ_EMPTY(&pool->requests)) {
        struct inbox_requests requests = STAILQ_HEAD_INITIALIZER(requests);

        STAILQ_CONCAT(&requests, &pool->requests);
        changed = receive_all(pool) || changed;
        answer_requests(pool, &requests);
    }
    if (changed && pool->starting != NULL)
        generation_advance(pool->starting);
}

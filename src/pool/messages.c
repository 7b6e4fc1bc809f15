/* SPDX-License-Identifier: BSD-2-Clause */
/* The master's ends of the channels. A message is input: one that does not fit the worker's
 * phase is ignored, numbers in it are looked up and never trusted, descriptors that nobody wants
 * are closed. */
#include "pool/pool.h"

#include "process/role.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

/* A process that ends closes its channel too: it is reaped within this time. */
#define CHANNEL_LOST_MS 1000

struct inbox_request {
    STAILQ_ENTRY(inbox_request) link;
    struct pool_worker *from;
    uint32_t wanted; /* incarnation, as slot_incarnation() gives it */
};

void pool_rescan(struct pool *pool, const struct pool_worker *except)
{
    struct generation *generation;
    struct pool_worker *worker;

    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_WORKER (worker, generation)
            if (worker->phase == POOL_WORKER_ACCEPTING && worker != except)
                pool_worker_send(worker, MESSAGE_RESCAN, 0, -1);
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
    const struct generation *generation;
    const struct pool_worker *worker;

    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_WORKER (worker, generation)
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

/* The worker has come further: it is ready, or it accepts. */
static void advance_worker(struct pool_worker *worker, enum pool_worker_phase phase)
{
    struct generation *generation = worker->generation;
    struct pool *pool = generation->pool;

    if (worker->phase + 1 == phase)
        pool_worker_set_phase(worker, phase);
    else if (phase == POOL_WORKER_READY || worker->phase < phase)
        return;
    pool_deadline_drop_start(worker);
    if (phase == POOL_WORKER_READY) {
        if (generation == pool->serving || generation->phase == GENERATION_COMMITTED)
            pool_worker_arm(worker); /* a replacement */
    } else if (generation->phase == GENERATION_DRAINING) {
        /* its commit has failed: it accepts only who waits already, and drains */
        pool_worker_drain(worker);
    }
}

static void handle_message(struct pool_worker *worker, struct channel_message *message)
{
    struct pool *pool = worker->generation->pool;

    switch ((enum channel_message_kind)message->kind) {
    case MESSAGE_READY:
        advance_worker(worker, POOL_WORKER_READY);
        break;
    case MESSAGE_ACCEPTING:
        advance_worker(worker, POOL_WORKER_ACCEPTING);
        break;
    case MESSAGE_RELEASED:
        if (worker->phase != POOL_WORKER_READY && worker->phase != POOL_WORKER_ACCEPTING)
            break;
        pool_worker_set_phase(worker, POOL_WORKER_RELEASED);
        pool_deadline_drop_start(worker);
        pool_deadline_set_drain(worker); /* somebody else than us may have told it to */
        break;
    case MESSAGE_RESCAN:
        pool_rescan(pool, worker);
        pool->ops->rescan(pool->host);
        break;
    case MESSAGE_LOG_BROKEN:
        pool_note_broken_log(worker->generation, message->argument);
        break;
    case MESSAGE_INBOX:
        if (worker->inbox != -1)
            break;
        worker->inbox = message->fd;
        message->fd = -1;
        break;
    case MESSAGE_INBOX_WANTED:
        note_request(worker, message->argument);
        break;
    case MESSAGE_MUTEX_DAMAGED:
        pool_note_damaged_mutex(worker);
        break;
    case MESSAGE_LISTENER_BROKEN:
        pool_note_broken_listener(worker, message->argument);
        break;
    default:
        break;
    }
}

/* Receives all that a worker has sent. One that closes its channel and lives has lost its
 * descriptors, and does not hear us any more. */
static void receive_from(struct pool_worker *worker)
{
    enum channel_status status = CHANNEL_AGAIN;
    struct channel_message message;

    while (worker->channel != -1 &&
           (status = channel_receive(worker->channel, &message)) == CHANNEL_DONE) {
        handle_message(worker, &message);
        if (message.fd != -1)
            close(message.fd);
    }
    if (status == CHANNEL_CLOSED && worker->channel != -1 && worker->killed == POOL_KILL_NONE)
        pool_deadline_set(worker, POOL_KILL_CHANNEL_LOST, CHANNEL_LOST_MS);
}

void pool_receive_messages(struct pool *pool)
{
    struct inbox_requests requests = STAILQ_HEAD_INITIALIZER(requests);
    struct generation *generation;
    struct pool_worker *worker;

    assert(role_is(ROLE_MASTER));
    assert(STAILQ_EMPTY(&pool->requests));
    /* A worker that asks for an inbox learned of its peer after the peer had sent the inbox to
     * us, perhaps on a channel that was read before: reading all channels once more finds it. */
    do {
        STAILQ_CONCAT(&requests, &pool->requests);
        TAILQ_FOREACH (generation, &pool->generations, link)
            GENERATION_FOREACH_WORKER (worker, generation)
                receive_from(worker);
        if (!STAILQ_EMPTY(&requests))
            answer_requests(pool, &requests);
    } while (!STAILQ_EMPTY(&pool->requests));
    if (pool->starting != NULL)
        generation_advance(pool->starting);
}

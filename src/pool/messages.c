/* SPDX-License-Identifier: BSD-2-Clause */
/* The master's ends of the channels. A message is input: the work of one wake-up is bounded, and a
 * worker that breaks a rule is killed and replaced. The rules: a packet is a message, of a kind
 * that workers send, once where that happens once, with an argument in its range and without a
 * descriptor, and there are not more of them than a worker can have reason for. */
#include "pool/pool.h"

#include "process/fd_passing.h"
#include "process/role.h"

#include <assert.h>
#include <limits.h>
#include <signal.h>

/* A process that ends closes its channel too: it is reaped within this time. */
#define CHANNEL_LOST_MS 1000

/* Messages of one worker that are received before the others, and other work, have their turn. */
#define MESSAGES_A_TURN 32

/* Workers keep to half of this (worker/peers.c, worker/accept.c, worker/outbox.c). */
static const struct token_rate message_rate = { .burst = 4096, .per_second = 1000 };

static const char wrong_length[] = "a message of a wrong length";
static const char unknown_kind[] = "a message of unknown kind";
static const char wrong_phase[] = "a message that does not fit its phase";
static const char wrong_argument[] = "an argument out of range";
static const char descriptor_passed[] = "a descriptor was passed";
static const char too_many[] = "more than 1000 messages a second";
static const char unread_replies[] = "requests whose replies are not read";

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
        /* a commit has failed in the worker: it accepts only who waits already, and drains */
        pool_worker_drain(worker);
    }
}

/* Somebody has shut the worker's inbox down: the next that asks for it gets a new one. */
static void drop_inbox(struct pool_worker *worker)
{
    if (worker->inbox != -1)
        fd_close_socket(worker->inbox);
    if (worker->outbox.inbox != -1)
        fd_close_socket(worker->outbox.inbox);
    worker->inbox = worker->outbox.inbox = -1;
}

static const char *handle_ready(struct pool_worker *worker)
{
    if (worker->phase != POOL_WORKER_STARTING)
        return wrong_phase;
    advance_worker(worker, POOL_WORKER_READY);
    return NULL;
}

static const char *handle_accepting(struct pool_worker *worker)
{
    if (worker->intake.accept_n == 0)
        return wrong_phase;
    worker->intake.accept_n--;
    advance_worker(worker, POOL_WORKER_ACCEPTING);
    return NULL;
}

static const char *handle_released(struct pool_worker *worker)
{
    if (worker->phase != POOL_WORKER_READY && worker->phase != POOL_WORKER_ACCEPTING)
        return wrong_phase;
    pool_worker_set_phase(worker, POOL_WORKER_RELEASED);
    pool_deadline_drop_start(worker);
    pool_deadline_set_drain(worker); /* somebody else than us may have told it to */
    return NULL;
}

static const char *handle_log_broken(struct pool_worker *worker, uint32_t log)
{
    if (log >= worker->generation->cycle->core.log_n)
        return wrong_argument;
    pool_note_broken_log(worker->generation, log);
    return NULL;
}

static const char *handle_inbox_wanted(struct pool_worker *worker, uint32_t incarnation)
{
    if (incarnation >> INCARNATION_BITS != 0 || incarnation == slot_incarnation(worker->slot))
        return wrong_argument;
    return pool_outbox_want_inbox(worker, incarnation) ? NULL : unread_replies;
}

static const char *handle_listener_broken(struct pool_worker *worker, uint32_t fd)
{
    if (worker->phase < POOL_WORKER_READY)
        return wrong_phase;
    if (fd > INT_MAX)
        return wrong_argument;
    pool_note_broken_listener(worker, fd);
    return NULL;
}

/* Returns the rule that the message breaks, or NULL. */
static const char *handle_message(
    struct pool_worker *worker, enum channel_message_kind kind, uint32_t argument)
{
    if (kind == MESSAGE_LOG_BROKEN)
        return handle_log_broken(worker, argument);
    if (kind == MESSAGE_INBOX_WANTED)
        return handle_inbox_wanted(worker, argument);
    if (kind == MESSAGE_LISTENER_BROKEN)
        return handle_listener_broken(worker, argument);
    if (argument != 0)
        return wrong_argument;
    switch (kind) {
    case MESSAGE_READY:
        return handle_ready(worker);
    case MESSAGE_ACCEPTING:
        return handle_accepting(worker);
    case MESSAGE_RELEASED:
        return handle_released(worker);
    case MESSAGE_RESCAN:
        if (worker->phase < POOL_WORKER_READY)
            return wrong_phase;
        pool_rescan(worker->generation->pool, worker);
        return NULL;
    case MESSAGE_MUTEX_DAMAGED:
        if (worker->phase < POOL_WORKER_READY)
            return wrong_phase;
        pool_note_damaged_mutex(worker);
        return NULL;
    case MESSAGE_INBOX_LOST:
        drop_inbox(worker);
        return NULL;
    default:
        return unknown_kind;
    }
}

static const char *take_message(struct pool_worker *worker, const struct channel_message *message)
{
    const struct pool *pool = worker->generation->pool;

    if (message->fd != -1) {
        fd_discard(message->fd);
        return descriptor_passed;
    }
    if (!token_bucket_take(&worker->intake.messages, &message_rate, pool->clock->mono_ms))
        return too_many;
    return handle_message(worker, (enum channel_message_kind)message->kind, message->argument);
}

/* Receives some of a worker's messages; returns whether more may wait. A worker that closes its
 * channel and lives has lost its descriptors, and does not hear us any more. */
static bool receive_some(struct pool_worker *worker)
{
    for (int i = 0; i < MESSAGES_A_TURN; i++) {
        struct channel_message message;
        const char *broken = NULL;

        if (worker->channel == -1 || worker->killed != POOL_KILL_NONE)
            return false;
        switch (channel_receive(worker->channel, &message)) {
        case CHANNEL_AGAIN:
            return false;
        case CHANNEL_CLOSED:
            pool_deadline_set(worker, POOL_KILL_CHANNEL_LOST, CHANNEL_LOST_MS);
            return false;
        case CHANNEL_BROKEN:
            broken = wrong_length;
            break;
        case CHANNEL_DONE:
            broken = take_message(worker, &message);
            break;
        }
        if (broken != NULL)
            pool_worker_break_rule(worker, broken);
    }
    return true;
}

void pool_receive_messages(struct pool *pool)
{
    struct generation *generation;
    struct pool_worker *worker;
    bool more = false;

    assert(role_is(ROLE_MASTER));
    TAILQ_FOREACH (generation, &pool->generations, link)
        GENERATION_FOREACH_WORKER (worker, generation)
            more |= receive_some(worker);
    if (more)
        raise(SIGIO); /* signals, timers and clients come first; no other signal will tell of it */
    if (pool->starting != NULL)
        generation_advance(pool->starting);
}

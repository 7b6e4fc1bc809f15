/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives messages of workers their meaning. A message is input: a wake-up's work is bounded, and a
 * worker that breaks a rule is killed and replaced. Beside the rules of every channel
 * (channel/channel.c), a message has a kind sent by workers, comes in a fitting phase, once
 * where the event happens once, and has an argument in range. */
#include "pool/messages.h"

#include "base/compiler.h"
#include "pool/keepers.h"
#include "pool/listeners.h"
#include "pool/outbox.h"
#include "pool/report.h"
#include "pool/transaction.h"
#include "pool/worker.h"
#include "process/process_ops.h"
#include "process/role.h"

#include <assert.h>
#include <limits.h>
#include <signal.h>

/* Messages of a worker received in a turn. */
#define MESSAGES_A_TURN 32

static const char unknown_kind[] = "a message of unknown kind";
static const char wrong_phase[] = "a message that does not fit its phase";
static const char wrong_argument[] = "an argument out of range";
static const char unread_replies[] = "requests with unread replies";

#define IN(phase) (1u << POOL_WORKER_##phase)
#define IN_SET_UP (IN(READY) | IN(ACCEPTING) | IN(RELEASED))

#define SERVES (1u << TASK_SERVE)
#define KEEPS (1u << TASK_KEEP)
#define ASKS (1u << TASK_ASK)
#define ALL (SERVES | KEEPS | ASKS)

/* Phases, argument and tasks of each kind of message. No worker sends a kind without phases. */
static const struct message_rule {
    unsigned phases;
    bool has_argument;
    unsigned tasks;
} message_rules[] = {
    [MESSAGE_READY] = { IN(STARTING), false, ALL },
    [MESSAGE_ACCEPTING] = { IN_SET_UP, false, ALL },
    [MESSAGE_RELEASED] = { IN(READY) | IN(ACCEPTING), false, ALL },
    [MESSAGE_RESCAN] = { IN_SET_UP, false, SERVES | ASKS },
    [MESSAGE_LOG_BROKEN] = { IN(STARTING) | IN_SET_UP, true, ALL },
    [MESSAGE_INBOX_LOST] = { IN(STARTING) | IN_SET_UP, false, SERVES },
    [MESSAGE_INBOX_WANTED] = { IN(STARTING) | IN_SET_UP, true, SERVES },
    [MESSAGE_MUTEX_DAMAGED] = { IN_SET_UP, false, SERVES },
    [MESSAGE_LISTENER_BROKEN] = { IN_SET_UP, true, SERVES },
    [MESSAGE_OTHERS_WANTED] = { IN(STARTING) | IN_SET_UP, false, SERVES },
    [MESSAGE_NAMES] = { IN(STARTING) | IN_SET_UP, false, ASKS },
    [MESSAGE_LINK_LOST] = { IN(STARTING) | IN_SET_UP, true, SERVES },
    [MESSAGE_FILE_WANTED] = { IN(STARTING) | IN_SET_UP, true, KEEPS },
    [MESSAGE_REPORT] = { IN_SET_UP, true, KEEPS },
};

/* Carries out a request. Returns the broken rule, or NULL. */
static const char *handle_request(
    struct pool_worker *worker, enum channel_message_kind kind, uint32_t argument)
{
    switch (kind) {
    case MESSAGE_RESCAN:
        pool_rescan(worker->generation->pool, worker);
        return NULL;
    case MESSAGE_NAMES:
        pool_rescan_names(worker->generation->pool);
        return NULL;
    case MESSAGE_MUTEX_DAMAGED:
        pool_note_damaged_mutex(worker);
        return NULL;
    case MESSAGE_INBOX_LOST: /* somebody has shut it down */
        pool_worker_drop_inbox(worker);
        return NULL;
    case MESSAGE_INBOX_WANTED:
        if (argument >> INCARNATION_BITS != 0 || argument == slot_incarnation(worker->slot))
            return wrong_argument;
        return pool_outbox_want_inbox(worker, argument) ? NULL : unread_replies;
    case MESSAGE_OTHERS_WANTED:
        return pool_others_want(worker);
    case MESSAGE_LOG_BROKEN:
        if (argument >= core_target_n(&worker->generation->cycle->core))
            return wrong_argument;
        pool_outbox_broken_log(worker, argument);
        return NULL;
    case MESSAGE_LISTENER_BROKEN:
        if (argument > INT_MAX)
            return wrong_argument;
        worker->broken_listener = (int)argument;
        pool_look_at_listeners(worker->generation->pool);
        return NULL;
    case MESSAGE_LINK_LOST:
        if (argument == 0 || argument > worker->link_n)
            return wrong_argument;
        if (argument == worker->link_n) /* else a new one is under way */
            pool_keepers_link(worker);
        return NULL;
    case MESSAGE_FILE_WANTED:
        if (argument >= worker->generation->cycle->tls.file_n)
            return wrong_argument;
        return pool_keepers_want_file(worker, argument) ? NULL : unread_replies;
    case MESSAGE_REPORT:
        return pool_report_take(worker, argument);
    default:
        return unknown_kind;
    }
}

/* Handles a message. Returns the rule that the message breaks, or NULL. */
static const char *handle_worker_message(struct channel_end *end, struct channel_message *message)
{
    struct pool_worker *worker = container_of(end, struct pool_worker, channel);
    const struct generation *generation = worker->generation;
    const struct message_rule *rule =
        &message_rules[message->kind < countof(message_rules) ? message->kind : 0];

    assert(message->fd == -1 && worker->killed == POOL_KILL_NONE);
    if (message->argument != 0 && !rule->has_argument)
        return wrong_argument;
    if (rule->phases == 0 || (rule->tasks >> worker->task & 1) == 0)
        return unknown_kind;
    if ((rule->phases >> worker->phase & 1) == 0)
        return wrong_phase;
    switch (message->kind) {
    case MESSAGE_READY:
        pool_worker_set_phase(worker, POOL_WORKER_READY);
        if (generation == generation->pool->serving || generation->phase == GENERATION_COMMITTED)
            pool_worker_accept(worker); /* a replacement */
        return NULL;
    case MESSAGE_ACCEPTING:
        if (!worker->accept_asked || channel_end_is_unsent(end, MESSAGE_ACCEPT))
            return wrong_phase;
        worker->accept_asked = false;
        if (worker->phase == POOL_WORKER_READY)
            pool_worker_set_phase(worker, POOL_WORKER_ACCEPTING);
        else
            pool_deadline_set(worker, POOL_KILL_NONE);
        if (generation == generation->pool->serving)
            transaction_drain_replaced(generation->pool);
        /* after a failed commit the worker accepts only waiting clients, and drains */
        if (generation->phase == GENERATION_DRAINING)
            pool_worker_end(worker, true);
        return NULL;
    case MESSAGE_RELEASED:
        pool_worker_set_phase(worker, POOL_WORKER_RELEASED);
        pool_deadline_set(worker, POOL_KILL_DRAIN_LATE); /* somebody else may have told it to */
        return NULL;
    default:
        return handle_request(worker, (enum channel_message_kind)message->kind, message->argument);
    }
}

const struct channel_end_ops pool_channel_ops = {
    .handle = handle_worker_message,
    .send_more = pool_outbox_send_more,
    .failed = pool_outbox_failed,
    .first = 1u << MESSAGE_MUTEX_OFF, /* a worker told before accepting never tries the mutex */
};

void pool_receive_messages(struct pool *pool)
{
    struct pool_worker *worker;
    const char *rule;
    bool more = false;

    assert(role_is(ROLE_MASTER));
    POOL_FOREACH_WORKER (worker, pool) {
        if (logs_output_read(&worker->output, &worker->lines, worker->pid, false))
            more = true;
        if (worker->killed != POOL_KILL_NONE)
            process_ops->wakeup_remove(worker->channel.fd);
        if (worker->channel.fd == -1 || worker->killed != POOL_KILL_NONE)
            continue;
        switch (channel_end_receive(&worker->channel, MESSAGES_A_TURN, &rule)) {
        case CHANNEL_AGAIN:
            break;
        case CHANNEL_DONE:
            more = true;
            break;
        case CHANNEL_CLOSED: /* a living worker has lost all descriptors, and hears nothing */
            pool_deadline_set(worker, POOL_KILL_CHANNEL_LOST);
            process_ops->wakeup_remove(worker->channel.fd);
            break;
        case CHANNEL_BROKEN:
            pool_worker_break_rule(worker, rule);
            break;
        }
    }
    pool_keepers_look(pool);
    if (more) /* signals, timers and clients come first; no further signal follows */
        process_ops->raise(SIGIO);
    if (pool->starting != NULL)
        transaction_advance(pool->starting);
}

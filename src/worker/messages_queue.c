/* SPDX-License-Identifier: BSD-2-Clause */
/* Queued messages, and the tree of sent messages until their outcome has been reported to the
 * sender. Reports run on the loop, never within the call that sends. */
#include "base/check.h"
#include "session/use.h"
#include "worker/messages_private.h"
#include "worker/references.h"

#include <string.h>

/* ---- Queued messages ---- */

struct queued_message *message_create(struct worker *worker, const struct message_head *head,
    const void *p, size_t n, struct message_bytes *shared)
{
    struct queued_message *message =
        memory_alloc(worker->stream.net.memory, sizeof(*message) + (shared == NULL ? n : 0));

    if (message == NULL)
        return NULL;
    *message = (struct queued_message) { .head = *head, .n = n, .p = message->own };
    if (shared != NULL) {
        shared->users++;
        message->shared = shared;
        message->p = shared->bytes;
    } else if (n > 0) {
        memcpy(message->own, p, n);
    }
    return message;
}

void message_free(struct worker *worker, struct queued_message *message)
{
    const struct memory *memory = worker->stream.net.memory;

    if (message == NULL)
        return;
    assert(message->shared == NULL || message->shared->users > 0);
    if (message->shared != NULL && --message->shared->users == 0)
        memory_release(memory, message->shared);
    memory_release(memory, message);
}

struct queued_message *message_take(struct message_queue *queue)
{
    struct queued_message *message = STAILQ_FIRST(queue);

    if (message != NULL)
        STAILQ_REMOVE_HEAD(queue, link);
    return message;
}

void messages_free(struct worker *worker, struct message_queue *queue)
{
    struct queued_message *message;

    while ((message = message_take(queue)) != NULL)
        message_free(worker, message);
}

void messages_post_local(struct worker *worker)
{
    struct event *event = &worker->messages->local->events[EVENT_READ];

    loop_post(&worker->stream.net.loop, event, QUEUE_NEXT);
}

/* ---- Unanswered messages ---- */

/* Orders by message, then by receiver. */
static int compare_unanswered(const struct unanswered *a, const struct unanswered *b)
{
    if (a->number != b->number)
        return a->number > b->number ? 1 : -1;
    return (a->to > b->to) - (a->to < b->to);
}

RB_GENERATE_INTERNAL(
    unanswered_tree, unanswered, node, compare_unanswered, static __attribute__((unused)))

struct unanswered *messages_await(
    struct worker *worker, const struct message_head *head, unsigned protocol, bool is_unheard)
{
    struct unanswered *unanswered = memory_alloc(worker->stream.net.memory, sizeof(*unanswered));

    if (unanswered == NULL)
        return NULL;
    *unanswered = (struct unanswered) {
        .number = head->number,
        .from = head->from,
        .to = head->to,
        .protocol = protocol,
        .is_unheard = is_unheard,
    };
    RB_INSERT(unanswered_tree, &worker->messages->unanswered, unanswered);
    return unanswered;
}

void messages_await_not(struct worker *worker, struct unanswered *unanswered)
{
    RB_REMOVE(unanswered_tree, &worker->messages->unanswered, unanswered);
    worker->messages->decided_n -= unanswered->outcome != 0;
    memory_release(worker->stream.net.memory, unanswered);
}

void messages_decide(struct worker *worker, struct unanswered *unanswered, fb_outcome outcome)
{
    assert(unanswered->outcome == 0 && outcome != 0);
    worker->messages->decided_n++;
    unanswered->outcome = outcome;
    messages_post_local(worker);
}

void messages_decide_unknown(struct worker *worker, uint32_t incarnation)
{
    struct unanswered *unanswered;

    RB_FOREACH (unanswered, unanswered_tree, &worker->messages->unanswered)
        if (references_incarnation(unanswered->to) == incarnation && unanswered->outcome == 0)
            messages_decide(worker, unanswered, FB_MESSAGE_UNKNOWN);
}

void messages_heard_of(struct worker *worker, fb_ref id, uint64_t protocols)
{
    struct unanswered *unanswered;

    RB_FOREACH (unanswered, unanswered_tree, &worker->messages->unanswered)
        if (unanswered->to == id && (protocols >> unanswered->protocol & 1) != 0)
            unanswered->is_unheard = false;
}

/* ---- Reports ---- */

/* Reports to the worker, with the number of answers that are still to come for the message. */
static void report_to_worker(struct worker *worker, unsigned protocol, struct fb_answer *answer)
{
    struct fb_worker *handle = &worker->protocols[protocol];
    struct unanswered key = { .number = answer->message };
    struct unanswered *next = RB_NFIND(unanswered_tree, &worker->messages->unanswered, &key);

    assert(handle->unanswered > 0);
    handle->unanswered--;
    while (next != NULL && next->number == answer->message) {
        answer->left++;
        next = RB_NEXT(unanswered_tree, &worker->messages->unanswered, next);
    }
    if (handle->started && WORKER_HAS(handle, answered))
        WORKER_CALL(handle, CALLBACK_WORKER_ANSWERED,
            handle->protocol->worker_ops->answered(handle, handle->state, answer));
}

static void report_to_conn(struct fb_conn *conn, const struct fb_answer *answer, bool guessed)
{
    struct session_use *use = session_use_of(conn);
    const fb_protocol *protocol = session_server_of(conn)->protocol;
    fb_outcome outcome = answer->outcome;

    assert(use->unanswered > 0);
    use->unanswered--;
    use->guesses += guessed;
    if (!conn_is_active(conn) || conn->pipe != NULL || !SESSION_HAS(session_ops_of(conn), answered))
        return;
    if (outcome == FB_MESSAGE_BUSY && protocol->api < 4) /* API 3 knows of three outcomes */
        outcome = FB_MESSAGE_DECLINED;
    session_callback_begin(conn, CALLBACK_ANSWERED);
    session_ops_of(conn)->answered(conn, conn->state, answer->message, outcome);
    session_callback_end(conn);
}

/* Reports the outcome to the sender, if any. Without the protocol there was no receiver. */
static void report_message_outcome(
    struct worker *worker, struct unanswered *unanswered, fb_outcome outcome, bool guessed)
{
    const struct unanswered sent = *unanswered;
    bool had_none = sent.is_unheard && outcome == FB_MESSAGE_UNKNOWN;
    struct fb_answer answer = {
        .message = sent.number,
        .to = had_none ? 0 : sent.to,
        .outcome = had_none ? FB_MESSAGE_HANDLED : outcome,
    };
    struct fb_conn *conn;

    messages_await_not(worker, unanswered);
    if (references_is_worker(sent.from))
        report_to_worker(worker, sent.protocol, &answer);
    else if ((conn = references_find(worker, sent.from)) != NULL)
        report_to_conn(conn, &answer, guessed);
}

void messages_answered(
    struct worker *worker, const struct message_head *reply, struct sibling *sibling)
{
    /* counts even when "unknown" was decided here, because the receiver seemed to be gone */
    struct unanswered key = { .number = reply->number, .to = reply->from };
    struct unanswered *unanswered = RB_FIND(unanswered_tree, &worker->messages->unanswered, &key);
    bool guessed = reply->outcome == MESSAGE_IS_GUESS;

    if (unanswered == NULL || unanswered->from != reply->to)
        return;
    if (sibling != NULL && unanswered->is_unheard) /* the protocol does not run there */
        sibling->unheard &= ~(UINT64_C(1) << unanswered->protocol);
    report_message_outcome(
        worker, unanswered, guessed ? FB_MESSAGE_UNKNOWN : (fb_outcome)reply->outcome, guessed);
}

/* Reports in the order of sending. Messages sent meanwhile wait: a protocol could send for ever. */
void messages_report_decided(struct worker *worker)
{
    struct messages *messages = worker->messages;
    struct unanswered key = { .number = 0 }, *unanswered;
    uint64_t last = messages->last_number;

    while (messages->decided_n > 0 &&
           (unanswered = RB_NFIND(unanswered_tree, &messages->unanswered, &key)) != NULL &&
           unanswered->number <= last) {
        key.number = unanswered->number;
        key.to = unanswered->to + 1; /* no reference is UINT64_MAX, or it comes again: 0 */
        key.number += key.to == 0;
        if (unanswered->outcome == 0)
            continue;
        report_message_outcome(worker, unanswered, unanswered->outcome, false);
        net_flush(&worker->stream.net);
    }
}

void messages_check_unanswered(const struct messages *messages)
{
    struct unanswered *unanswered;
    unsigned decided_n = 0;

    RB_FOREACH (unanswered, unanswered_tree, (struct unanswered_tree *)&messages->unanswered) {
        assert(unanswered->number <= messages->last_number && unanswered->from != 0);
        decided_n += unanswered->outcome != 0;
    }
    assert(decided_n == messages->decided_n);
    /* the local source is posted when needed */
    assert((decided_n == 0 && STAILQ_EMPTY(&messages->local_queue) &&
               (TAILQ_EMPTY(&messages->gone) || messages->short_of_memory)) ||
           messages->local->events[EVENT_READ].queue != QUEUE_NONE);
}

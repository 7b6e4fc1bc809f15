/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that have not been answered. A message of ours stays in the tree until its outcome has
 * been reported to the connection or the protocol that sent it. Reports run on the loop, never
 * within the call that sends. */
#include "base/check.h"
#include "session/use.h"
#include "worker/messages_private.h"
#include "worker/references.h"

/* The outcome that a message waits for, and a worker after it is asked to go on. */
static int compare(const struct unanswered *a, const struct unanswered *b)
{
    if (a->number != b->number)
        return a->number > b->number ? 1 : -1;
    return (a->to > b->to) - (a->to < b->to);
}

RB_GENERATE_INTERNAL(unanswered_tree, unanswered, node, compare, static __attribute__((unused)))

struct unanswered *messages_await(struct worker *worker, const struct unanswered *values)
{
    struct messages *messages = worker->messages;
    struct unanswered *unanswered = memory_alloc(messages_net(worker)->memory, sizeof(*unanswered));

    if (unanswered == NULL)
        return NULL;
    *unanswered = *values;
    RB_INSERT(unanswered_tree, &messages->unanswered, unanswered);
    return unanswered;
}

void messages_await_not(struct worker *worker, struct unanswered *unanswered)
{
    struct messages *messages = worker->messages;

    RB_REMOVE(unanswered_tree, &messages->unanswered, unanswered);
    messages->decided_n -= unanswered->outcome != 0;
    memory_release(messages_net(worker)->memory, unanswered);
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

/* A worker that has not greeted us does not know a message's protocol: it is sent no more. */
static void note_stranger(struct worker *worker, const struct unanswered *unanswered)
{
    struct peer *peer = peers_find(worker->messages, references_incarnation(unanswered->to));

    if (peer != NULL)
        peer->unheard &= ~(UINT64_C(1) << unanswered->protocol);
}

/* Counts the answers that are still to come for a message. */
static uint32_t count_left(struct messages *messages, uint64_t number)
{
    struct unanswered key = { .number = number };
    struct unanswered *unanswered = RB_NFIND(unanswered_tree, &messages->unanswered, &key);
    uint32_t n = 0;

    for (; unanswered != NULL && unanswered->number == number; n++)
        unanswered = RB_NEXT(unanswered_tree, &messages->unanswered, unanswered);
    return n;
}

static void report_to_worker(
    struct worker *worker, unsigned protocol, const struct fb_answer *answer)
{
    struct fb_worker *own = &worker->protocols[protocol];
    struct heartbeat *heartbeat = messages_net(worker)->heartbeat;

    assert(own->unanswered > 0);
    own->unanswered--;
    if (!own->started || !WORKER_HAS(own, answered))
        return;
    heartbeat_begin(heartbeat, CALLBACK_WORKER_ANSWERED, protocol);
    own->protocol->worker_ops->answered(own, own->state, answer);
    worker_check_fork(worker);
    heartbeat_end(heartbeat);
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

/* Reports the outcome to the one that has sent the message, if it is still there. */
static void report(
    struct worker *worker, struct unanswered *unanswered, fb_outcome outcome, bool guessed)
{
    fb_ref from = unanswered->from;
    unsigned protocol = unanswered->protocol;
    struct fb_answer answer = {
        .message = unanswered->number, .to = unanswered->to, .outcome = outcome
    };
    struct fb_conn *conn;

    if (unanswered->is_unheard && outcome == FB_MESSAGE_UNKNOWN) { /* there was no receiver */
        note_stranger(worker, unanswered);
        answer.to = 0;
        answer.outcome = FB_MESSAGE_HANDLED;
    }
    messages_await_not(worker, unanswered);
    if (references_is_worker(from)) {
        answer.left = count_left(worker->messages, answer.message);
        report_to_worker(worker, protocol, &answer);
        return;
    }
    conn = references_find(worker, from);
    if (conn != NULL)
        report_to_conn(conn, &answer, guessed);
}

void messages_answered(struct worker *worker, const struct message_head *reply)
{
    /* the reply counts, even when "unknown" was decided here because its sender seemed to be
     * gone */
    struct unanswered key = { .number = reply->number, .to = reply->from };
    struct unanswered *unanswered = RB_FIND(unanswered_tree, &worker->messages->unanswered, &key);
    bool guessed = reply->outcome == MESSAGE_IS_GUESS;

    if (unanswered != NULL && unanswered->from == reply->to)
        report(
            worker, unanswered, guessed ? FB_MESSAGE_UNKNOWN : (fb_outcome)reply->outcome, guessed);
}

/* Reports in the order in which they were sent. Messages that are sent meanwhile have greater
 * numbers and wait for the next turn: a protocol could send for ever. */
void messages_report_decided(struct worker *worker)
{
    struct messages *messages = worker->messages;
    struct unanswered key = { .number = 0 }, *unanswered;
    uint64_t last = messages->last_number;

    peers_take_again(worker);
    while (messages->decided_n > 0 &&
           (unanswered = RB_NFIND(unanswered_tree, &messages->unanswered, &key)) != NULL &&
           unanswered->number <= last) {
        key.number = unanswered->number;
        key.to = unanswered->to + 1; /* no reference is UINT64_MAX, or it comes again: 0 */
        key.number += key.to == 0;
        if (unanswered->outcome == 0)
            continue;
        report(worker, unanswered, unanswered->outcome, false);
        net_flush(messages_net(worker));
    }
}

void messages_check(const struct worker *worker)
{
    const struct messages *messages = worker->messages;
    struct unanswered *unanswered;
    unsigned decided_n = 0;

    CHECK_KIND(messages, MESSAGES_KIND);
    RB_FOREACH (unanswered, unanswered_tree, (struct unanswered_tree *)&messages->unanswered) {
        assert(unanswered->number <= messages->last_number && unanswered->from != 0);
        decided_n += unanswered->outcome != 0;
    }
    assert(decided_n == messages->decided_n);
    /* the local source is posted while it has something to do */
    assert((decided_n == 0 && STAILQ_EMPTY(&messages->local_queue) &&
               (TAILQ_EMPTY(&messages->gone) || messages->short_of_memory)) ||
           messages->local->events[EVENT_READ].queue != QUEUE_NONE);
    peers_check(messages);
}

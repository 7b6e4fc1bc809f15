/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends, receives and answers messages. A message of ours stays in `unanswered` until its outcome
 * has been reported to the connection that sent it; reports run on the loop, never within
 * messages_send(). */
#include "worker/messages.h"

#include "base/check.h"
#include "stream/session_conn.h"
#include "worker/messages_private.h"
#include "worker/references.h"

#include <errno.h>
#include <string.h>

/* Messages that one connection may wait for the outcome of. */
#define UNANSWERED_MAX 1024
/* Messages that are received before an outcome is decided here: the peer may have answered before
 * it went. */
#define REPLIES_MAX 4096

static int compare_numbers(const struct unanswered *a, const struct unanswered *b)
{
    return (a->number > b->number) - (a->number < b->number);
}

RB_GENERATE_INTERNAL(
    unanswered_tree, unanswered, node, compare_numbers, static __attribute__((unused)))

static struct queued_message *create_message(
    struct fb_worker *worker, const struct message_head *head, const void *p, size_t n)
{
    struct queued_message *message =
        memory_alloc(messages_net(worker)->memory, sizeof(*message) + n);

    if (message == NULL)
        return NULL;
    message->n = n;
    message->head = *head;
    if (n > 0)
        memcpy(message->bytes, p, n);
    return message;
}

void messages_free(struct fb_worker *worker, struct message_queue *queue)
{
    struct queued_message *message;

    while ((message = STAILQ_FIRST(queue)) != NULL) {
        STAILQ_REMOVE_HEAD(queue, link);
        memory_release(messages_net(worker)->memory, message);
    }
}

static void post_local(struct fb_worker *worker)
{
    struct event *event = &worker->messages->local->events[EVENT_READ];

    loop_post(&messages_net(worker)->loop, event, QUEUE_NEXT);
}

void messages_queue_local(struct fb_worker *worker, struct queued_message *message)
{
    STAILQ_INSERT_TAIL(&worker->messages->local_queue, message, link);
    post_local(worker);
}

/* Decides an outcome here, because no other worker will. */
static void decide(struct fb_worker *worker, struct unanswered *unanswered, fb_outcome outcome)
{
    assert(unanswered->outcome == 0 && outcome != 0);
    worker->messages->decided_n++;
    unanswered->outcome = outcome;
    post_local(worker);
}

void messages_decide_unknown(struct fb_worker *worker, uint32_t incarnation)
{
    struct unanswered *unanswered;

    RB_FOREACH (unanswered, unanswered_tree, &worker->messages->unanswered)
        if (unanswered->incarnation == incarnation && unanswered->outcome == 0)
            decide(worker, unanswered, FB_MESSAGE_UNKNOWN);
}

/* Sends a message or a reply, which it takes; false when that failed. */
static bool send_message(struct fb_worker *worker, struct queued_message *message)
{
    if (references_incarnation(message->head.to) != references_own(worker))
        return peers_send(worker, message);
    messages_queue_local(worker, message);
    return true;
}

static bool takes_messages(const struct fb_conn *conn)
{
    return conn != NULL && conn_is_active(conn);
}

/* Gives a message to the protocol; returns whether it has handled it. */
static bool handle_message(struct fb_conn *conn, fb_ref from, fb_bytes bytes)
{
    const fb_ops *ops = session_ops_of(conn);
    int result;

    if (conn->pipe != NULL || !SESSION_HAS(ops, message))
        return false;
    session_callback_begin(conn, CALLBACK_MESSAGE);
    result = ops->message(conn, conn->state, from, bytes);
    session_callback_end(conn);
    return result == 0;
}

static bool receive_message(struct fb_worker *worker, const struct message_head *head,
    fb_bytes bytes, struct queued_message *own)
{
    struct fb_conn *conn = references_find(worker, head->to);
    struct message_head reply_head = {
        .number = head->number, .from = head->to, .to = head->from, .outcome = FB_MESSAGE_UNKNOWN
    };
    struct queued_message *reply;

    if (takes_messages(conn))
        reply_head.outcome =
            handle_message(conn, head->from, bytes) ? FB_MESSAGE_HANDLED : FB_MESSAGE_DECLINED;
    reply = own != NULL ? own : create_message(worker, &reply_head, NULL, 0);
    if (reply == NULL) {
        log_write(&worker->log, LEVEL_CRIT, errno, "no memory to answer a message");
        return false;
    }
    reply->head = reply_head;
    reply->n = 0;
    send_message(worker, reply);
    return own != NULL;
}

/* Reports the outcome to the connection that has sent the message, if it is still there. */
static void report_outcome(
    struct fb_worker *worker, struct unanswered *unanswered, fb_outcome outcome)
{
    struct messages *messages = worker->messages;
    struct fb_conn *conn = references_find(worker, unanswered->from);
    uint64_t number = unanswered->number;

    RB_REMOVE(unanswered_tree, &messages->unanswered, unanswered);
    messages->decided_n -= unanswered->outcome != 0;
    memory_release(messages_net(worker)->memory, unanswered);
    if (conn == NULL)
        return;
    assert(session_conn_of(conn)->unanswered > 0);
    session_conn_of(conn)->unanswered--;
    if (!takes_messages(conn) || conn->pipe != NULL || !SESSION_HAS(session_ops_of(conn), answered))
        return;
    session_callback_begin(conn, CALLBACK_ANSWERED);
    session_ops_of(conn)->answered(conn, conn->state, number, outcome);
    session_callback_end(conn);
}

bool messages_receive(struct fb_worker *worker, const struct message_head *head, fb_bytes bytes,
    struct queued_message *own)
{
    struct unanswered key = { .number = head->number }, *unanswered;

    if (head->outcome == 0)
        return receive_message(worker, head, bytes, own);
    /* the reply counts, even when "unknown" was decided here because its sender seemed to be
     * gone */
    unanswered = RB_FIND(unanswered_tree, &worker->messages->unanswered, &key);
    if (unanswered != NULL && unanswered->from == head->to &&
        unanswered->incarnation == references_incarnation(head->from))
        report_outcome(worker, unanswered, (fb_outcome)head->outcome);
    return false;
}

/* Reports the outcomes that were decided here. Messages that are sent meanwhile have greater
 * numbers and wait for the next turn: a protocol could send for ever. */
static void report_decided(struct fb_worker *worker)
{
    struct messages *messages = worker->messages;
    struct unanswered key = { .number = 0 }, *unanswered;
    uint64_t last = messages->last_number;

    while (messages->decided_n > 0 &&
           (unanswered = RB_NFIND(unanswered_tree, &messages->unanswered, &key)) != NULL &&
           unanswered->number <= last) {
        key.number = unanswered->number + 1;
        if (unanswered->outcome == 0)
            continue;
        report_outcome(worker, unanswered, unanswered->outcome);
        net_flush(messages_net(worker));
    }
}

/* Receives the local queue, and reports what was decided here. */
static void run_local(struct loop *loop, struct source *source)
{
    struct fb_worker *worker = worker_of_loop(loop);
    struct message_queue queue = STAILQ_HEAD_INITIALIZER(queue);
    struct queued_message *message;

    CHECK_KIND(worker->messages, MESSAGES_KIND);
    assert(source == worker->messages->local);
    STAILQ_CONCAT(&queue, &worker->messages->local_queue);
    while ((message = STAILQ_FIRST(&queue)) != NULL) {
        STAILQ_REMOVE_HEAD(&queue, link);
        if (!messages_receive(
                worker, &message->head, (fb_bytes) { message->bytes, message->n }, message))
            memory_release(messages_net(worker)->memory, message);
        net_flush(messages_net(worker));
    }
    if (worker->messages->decided_n > 0 && worker->messages->inbox != NULL)
        inbox_read(worker, REPLIES_MAX);
    report_decided(worker);
}

struct source *messages_source(struct fb_worker *worker, int fd, const struct source_ops *ops)
{
    struct source *source = source_get(&messages_net(worker)->loop.sources);

    if (source == NULL)
        return NULL;
    source->fd = fd;
    source->ops = ops;
    source->io = &io_socket;
    return source;
}

bool messages_open(struct fb_worker *worker)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = run_local } };
    struct messages *messages = worker->messages;

    if (messages != NULL)
        return true;
    messages = memory_alloc(messages_net(worker)->memory, sizeof(*messages));
    if (messages == NULL)
        return false;
    *messages = (struct messages) { .kind = MESSAGES_KIND, .retry.expired = peers_retry_expired };
    worker->messages = messages;
    STAILQ_INIT(&messages->local_queue);
    TAILQ_INIT(&messages->peers);
    RB_INIT(&messages->unanswered);
    messages->local = messages_source(worker, -1, &ops);
    if (messages->local != NULL)
        return true;
    log_write(&worker->log, LEVEL_CRIT, errno, "messages to connections cannot be received");
    messages_done(worker);
    return false;
}

void messages_done(struct fb_worker *worker)
{
    struct messages *messages = worker->messages;
    struct loop *loop = &messages_net(worker)->loop;
    struct unanswered *unanswered;

    if (messages == NULL)
        return;
    CHECK_KIND(messages, MESSAGES_KIND);
    peers_done(worker);
    while ((unanswered = RB_MIN(unanswered_tree, &messages->unanswered)) != NULL) {
        RB_REMOVE(unanswered_tree, &messages->unanswered, unanswered);
        memory_release(messages_net(worker)->memory, unanswered);
    }
    messages_free(worker, &messages->local_queue);
    timer_del(loop, &messages->retry);
    if (messages->local != NULL)
        source_close(loop, messages->local, false);
    if (messages->inbox != NULL)
        source_close(loop, messages->inbox, false);
    messages->kind = 0;
    memory_release(messages_net(worker)->memory, messages);
    worker->messages = NULL;
}

uint64_t messages_send(
    struct fb_worker *worker, struct fb_conn *from, fb_ref to, const void *p, size_t n)
{
    struct message_head head = { .from = references_make(worker, from), .to = to };
    struct session_conn *session = session_conn_of(from);
    struct unanswered *unanswered;
    struct queued_message *message;

    if (head.from == 0 || n > FB_MESSAGE_MAX || session->unanswered >= UNANSWERED_MAX)
        return 0;
    head.number = ++worker->messages->last_number;
    message = create_message(worker, &head, p, n);
    unanswered = memory_alloc(messages_net(worker)->memory, sizeof(*unanswered));
    if (message == NULL || unanswered == NULL) {
        memory_release(messages_net(worker)->memory, message);
        memory_release(messages_net(worker)->memory, unanswered);
        return 0;
    }
    *unanswered = (struct unanswered) {
        .number = head.number, .from = head.from, .incarnation = references_incarnation(to)
    };
    RB_INSERT(unanswered_tree, &worker->messages->unanswered, unanswered);
    session->unanswered++;
    if (!send_message(worker, message))
        decide(worker, unanswered, FB_MESSAGE_DECLINED);
    return head.number;
}

void messages_check(const struct fb_worker *worker)
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
    assert((decided_n == 0 && STAILQ_EMPTY(&messages->local_queue)) ||
           messages->local->events[EVENT_READ].queue != QUEUE_NONE);
    peers_check(messages);
}

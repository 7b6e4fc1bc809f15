/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives and answers messages, from the inbox and the local queue; opens and closes both. The
 * inbox is a socket of packets, made by the master on the first request of another worker.
 * Packets are input, because any worker can send anything there, or shut the socket down. A
 * reference reaches connections of the sender's own protocol, and of protocols that take
 * messages of others. */
#include "base/check.h"
#include "channel/fd_passing.h"
#include "os/descriptor.h"
#include "os/sockets.h"
#include "session/use.h"
#include "worker/messages_private.h"
#include "worker/references.h"

#include <errno.h>
#include <string.h>

/* Messages received in a turn. */
#define MESSAGES_A_TURN 64
/* Messages received before an outcome is decided here, or a worker is told to be gone. */
#define REPLIES_MAX 4096
/* Time without messages to connections, after too many guesses. */
#define DEAF_MS 1000

/* Rate of guesses that are answered, and interval of log lines about guesses. */
static const struct token_rate guess_rate = { .burst = 1024, .per_second = 250 };
#define GUESSES_SAY_MS 1000

static_assert(
    SESSION_NAME_LEAST >= UINT64_C(1) << REFERENCES_SERIAL_HIGH_BITS, "no name is a worker's too");
static_assert(SESSION_NAME_BITS == REFERENCES_NAME_BITS, "a name fits into a reference");

/* A packet, with a byte for the detection of longer packets. */
struct packet {
    struct message_head head;
    uint8_t bytes[FB_MESSAGE_MAX + 1];
};

/* ---- References ---- */

/* Whether a connection is reached from the protocol with this mark. */
static bool takes_messages_of(
    const struct fb_conn *conn, const struct worker *worker, uint64_t mark)
{
    const struct server *server = session_server_of(conn);

    return worker->protocols[server->protocol_index].mark == mark ||
           (server->protocol->flags & FB_TAKES_FOREIGN) != 0;
}

/* Whether a reference without a connection was never given out. */
static bool reference_is_guess(struct worker *worker, fb_ref ref)
{
    return references_incarnation(ref) == references_own(worker) && !references_is_worker(ref) &&
           !session_name_was_given(&worker->stream, REFERENCES_NAME(ref));
}

/* Counts and logs a guess; false after too many: guesses are not to be answered for a while. */
static bool note_guess(struct worker *worker)
{
    struct messages *messages = worker->messages;
    uint64_t now = worker->stream.net.loop.clock.mono_ms;

    if (messages == NULL) /* no reference was given out: there is nothing to find */
        return true;
    messages->guess_n++;
    if (messages->guess_told_ms == 0 || now - messages->guess_told_ms >= GUESSES_SAY_MS) {
        log_write(&worker->log, LEVEL_WARN, 0,
            "references were used that were never given out, %u in all", messages->guess_n);
        messages->guess_told_ms = now;
    }
    return token_bucket_take(&messages->guesses, &guess_rate, now);
}

struct fb_conn *messages_find_conn(struct fb_worker *handle, fb_ref ref)
{
    struct worker *worker = worker_of(handle);
    struct fb_conn *conn = references_find(worker, ref);

    if (conn == NULL && reference_is_guess(worker, ref))
        note_guess(worker);
    return conn != NULL && takes_messages_of(conn, worker, handle->mark) ? conn : NULL;
}

/* ---- Messages ---- */

/* Gives a message to a connection; the outcome. */
static uint64_t receive_for_conn(
    struct worker *worker, const struct message_head *head, fb_bytes bytes)
{
    uint64_t now = worker->stream.net.loop.clock.mono_ms;
    struct fb_conn *conn = references_find(worker, head->to);
    int result;

    if (now < worker->messages->deaf_until)
        return FB_MESSAGE_BUSY;
    if (conn == NULL && reference_is_guess(worker, head->to)) {
        if (!note_guess(worker))
            worker->messages->deaf_until = now + DEAF_MS;
        return MESSAGE_IS_GUESS;
    }
    if (conn == NULL || !conn_is_active(conn) || !takes_messages_of(conn, worker, head->protocol))
        return FB_MESSAGE_UNKNOWN;
    if (conn->pipe != NULL || !SESSION_HAS(session_ops_of(conn), message))
        return FB_MESSAGE_DECLINED;
    session_callback_begin(conn, CALLBACK_MESSAGE);
    result = session_ops_of(conn)->message(conn, conn->state, head->from, bytes);
    session_callback_end(conn);
    return result == 0 ? FB_MESSAGE_HANDLED : FB_MESSAGE_DECLINED;
}

static struct fb_worker *protocol_of_mark(struct worker *worker, uint64_t mark)
{
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        if (worker->protocols[i].started && worker->protocols[i].mark == mark)
            return &worker->protocols[i];
    return NULL;
}

/* Gives a message to this worker's part of the sender's protocol; the outcome. */
static uint64_t receive_for_worker(
    struct worker *worker, const struct message_head *head, fb_bytes bytes)
{
    struct fb_worker *handle = protocol_of_mark(worker, head->protocol);
    int result;

    if (head->to != references_own_worker(worker) || handle == NULL)
        return FB_MESSAGE_UNKNOWN;
    if (!WORKER_HAS(handle, message))
        return FB_MESSAGE_DECLINED;
    WORKER_CALL(handle, CALLBACK_WORKER_MESSAGE,
        result = handle->protocol->worker_ops->message(handle, handle->state, head->from, bytes));
    return result == 0 ? FB_MESSAGE_HANDLED : FB_MESSAGE_DECLINED;
}

/* ---- Workers that come and go ---- */

/* Tells protocols, as bits, by `worker_came` or `worker_gone`. */
static void tell_protocols(
    struct worker *worker, uint64_t protocols, enum callback callback, fb_ref id)
{
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++) {
        struct fb_worker *handle = &worker->protocols[i];
        void (*function)(fb_worker *worker, void *state, fb_ref id);

        if ((protocols >> i & 1) == 0 || !handle->started)
            continue;
        function = callback == CALLBACK_WORKER_CAME ? handle->protocol->worker_ops->worker_came
                                                    : handle->protocol->worker_ops->worker_gone;
        if (function != NULL)
            WORKER_CALL(handle, callback, function(handle, handle->state, id));
    }
}

/* Finds the protocols of a greeting here, as bits by index. */
static uint64_t find_protocols(struct worker *worker, fb_bytes marks)
{
    uint64_t found = 0, mark;

    for (size_t at = 0; at + sizeof(mark) <= marks.n; at += sizeof(mark)) {
        const struct fb_worker *handle;

        memcpy(&mark, marks.p + at, sizeof(mark));
        handle = protocol_of_mark(worker, mark);
        if (handle != NULL && worker_protocol_listens(handle))
            found |= UINT64_C(1) << handle->index;
    }
    return found;
}

static void receive_greeting(struct worker *worker, fb_ref from, fb_bytes marks)
{
    uint64_t protocols = find_protocols(worker, marks), came;
    uint32_t incarnation = references_incarnation(from);
    struct sibling *sibling;

    TAILQ_FOREACH (sibling, &worker->messages->gone, link)
        if (sibling->incarnation == incarnation) /* the end is still to be told */
            return;
    if (protocols == 0 || worker->phase >= WORKER_ENDING)
        return;
    sibling = siblings_get(worker, incarnation);
    if (sibling == NULL) {
        log_write(&worker->log, LEVEL_CRIT, errno, "no memory for another worker");
        return;
    }
    if (sibling->id != 0 && sibling->id != from) /* forged: a slot has one worker at a time */
        return;
    came = protocols & ~sibling->protocols;
    sibling->protocols |= protocols;
    sibling->id = from;
    sibling->unheard = 0;
    messages_heard_of(worker, from, protocols);
    if (!sibling->greeted)
        siblings_greet(worker, sibling); /* the sibling may be gone */
    tell_protocols(worker, came, CALLBACK_WORKER_CAME, from);
}

/* Tells protocols about workers that have gone and been heard out. */
static void tell_gone(struct worker *worker)
{
    struct messages *messages = worker->messages;
    struct sibling *sibling;

    while ((sibling = TAILQ_FIRST(&messages->gone)) != NULL) {
        TAILQ_REMOVE(&messages->gone, sibling, link);
        tell_protocols(worker, sibling->protocols, CALLBACK_WORKER_GONE, sibling->id);
        memory_release(worker->stream.net.memory, sibling);
        net_flush(&worker->stream.net);
    }
}

/* ---- Dispatch ---- */

/* Receives a message, reply or greeting. `own`, perhaps the message itself, is sent back as the
 * reply to a message; returns whether it was. */
static bool receive_message(struct worker *worker, const struct message_head *head, fb_bytes bytes,
    struct queued_message *own)
{
    struct message_head reply = { .number = head->number, .from = head->to, .to = head->from };
    bool is_unknown = head->outcome == FB_MESSAGE_UNKNOWN || head->outcome == MESSAGE_IS_GUESS;

    assert(own != NULL);
    if (head->outcome == MESSAGE_IS_GREETING)
        receive_greeting(worker, head->from, bytes);
    else if (head->outcome != MESSAGE_IS_SENT)
        messages_answered(worker, head,
            is_unknown ? siblings_find(worker->messages, references_incarnation(head->from))
                       : NULL);
    if (head->outcome != MESSAGE_IS_SENT)
        return false;
    reply.outcome = references_is_worker(head->to) ? receive_for_worker(worker, head, bytes)
                                                   : receive_for_conn(worker, head, bytes);
    assert(own->shared == NULL); /* the local queue has none */
    own->head = reply;
    own->p = own->own;
    own->n = 0;
    siblings_send(worker, own);
    return true;
}

/* ---- The inbox ---- */

/* Whether a packet of n bytes is a message. */
static bool is_message(const struct worker *worker, const struct packet *packet, size_t n)
{
    const struct message_head *head = &packet->head;
    uint32_t own = references_own(worker);

    if (n < sizeof(*head) || n > sizeof(*head) + FB_MESSAGE_MAX || head->from == 0 ||
        references_incarnation(head->to) != own || references_incarnation(head->from) == own)
        return false;
    if (head->outcome == MESSAGE_IS_GREETING)
        return references_is_worker(head->from);
    return head->outcome == MESSAGE_IS_SENT ||
           (n == sizeof(*head) &&
               (head->outcome <= FB_MESSAGE_BUSY || head->outcome == MESSAGE_IS_GUESS));
}

/* Whether there is memory for the next reply; without it messages wait in the socket. */
static bool has_spare(struct worker *worker)
{
    static const struct message_head none;
    struct messages *messages = worker->messages;

    if (messages->spare == NULL)
        messages->spare = message_create(worker, &none, NULL, 0, NULL);
    if (messages->spare == NULL && !messages->short_of_memory)
        log_write(&worker->log, LEVEL_CRIT, errno, "no memory to receive messages, they wait");
    messages->short_of_memory = messages->spare == NULL;
    if (messages->short_of_memory)
        siblings_retry_soon(worker);
    return !messages->short_of_memory;
}

/* Receives at most `most` messages from the inbox, which may be gone then. */
static void read_inbox(struct worker *worker, int most)
{
    struct source *source = worker->messages->inbox;
    struct packet packet;

    assert(source != NULL && source->in_use);
    for (int i = 0; i < most && has_spare(worker); i++) {
        int passed;
        ssize_t n = fd_receive(
            source->fd, &packet, sizeof(packet.head) + sizeof(packet.bytes), &passed, NULL);

        if (passed != -1)
            descriptor_discard(passed);
        if (n == -1 && (errno == EINTR || errno == ECONNRESET))
            continue;
        if (n == 0 && os_socket_is_closed(source->fd)) {
            log_write(&worker->log, LEVEL_ERROR, 0,
                "the socket of messages from other workers was shut down, and is made again");
            source_close(&worker->stream.net.loop, source, false);
            worker->messages->inbox = NULL;
            channel_end_send(&worker->to_master, MESSAGE_INBOX_LOST);
            return;
        }
        if (n == -1) { /* none is left */
            source->events[EVENT_READ].ready = false;
            return;
        }
        if (!is_message(worker, &packet, (size_t)n))
            continue;
        if (receive_message(worker, &packet.head,
                (fb_bytes) { packet.bytes, (size_t)n - sizeof(packet.head) },
                worker->messages->spare))
            worker->messages->spare = NULL;
        net_flush(&worker->stream.net);
    }
}

static void inbox_readable(struct loop *loop, struct source *source)
{
    struct worker *worker = worker_of_loop(loop);

    CHECK_KIND(worker->messages, MESSAGES_KIND);
    assert(source == worker->messages->inbox);
    read_inbox(worker, MESSAGES_A_TURN);
    if (worker->messages->inbox != NULL && source->events[EVENT_READ].ready &&
        !worker->messages->short_of_memory)
        loop_post(loop, &source->events[EVENT_READ], QUEUE_NEXT);
}

void messages_open_inbox(struct worker *worker, struct channel_message *message)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = inbox_readable } };
    struct loop *loop = &worker->stream.net.loop;
    bool opens = message->fd != -1 && messages_open(worker) && worker->messages->inbox == NULL;
    struct source *source = opens ? worker_source(worker, message->fd, &ops) : NULL;

    if (source != NULL)
        message->fd = -1;
    if (source != NULL && source_arm(loop, source, EVENT_READ) == 0)
        worker->messages->inbox = source;
    else if (opens)
        log_write(&worker->log, LEVEL_CRIT, errno, "messages cannot be received");
    if (worker->messages != NULL && worker->messages->inbox != NULL)
        return;
    if (source != NULL)
        source_close(loop, source, false);
    channel_end_send(&worker->to_master, MESSAGE_INBOX_LOST);
}

/* ---- The queues ---- */

/* Receives the local queue, reports outcomes decided here, and tells about gone workers. */
static void run_local(struct loop *loop, struct source *source)
{
    struct worker *worker = worker_of_loop(loop);
    struct messages *messages = worker->messages;
    struct message_queue queue = STAILQ_HEAD_INITIALIZER(queue);
    struct queued_message *message;

    CHECK_KIND(messages, MESSAGES_KIND);
    assert(source == messages->local);
    STAILQ_CONCAT(&queue, &messages->local_queue);
    while ((message = message_take(&queue)) != NULL) {
        if (!receive_message(
                worker, &message->head, (fb_bytes) { message->p, message->n }, message))
            message_free(worker, message);
        net_flush(&worker->stream.net);
    }
    if ((messages->decided_n > 0 || !TAILQ_EMPTY(&messages->gone)) && messages->inbox != NULL)
        read_inbox(worker, REPLIES_MAX);
    siblings_take_again(worker);
    messages_report_decided(worker);
    if (!messages->short_of_memory) /* more messages may wait in the inbox otherwise */
        tell_gone(worker);
}

static void siblings_retry_expired(struct loop *loop, struct timer *timer)
{
    struct worker *worker = worker_of_loop(loop);
    struct messages *messages = worker->messages;
    struct source *inbox = messages->inbox;

    CHECK_KIND(messages, MESSAGES_KIND);
    assert(timer == &messages->retry);
    if (messages->short_of_memory) { /* reading goes on, when there is memory again */
        messages->short_of_memory = inbox != NULL;
        messages_post_local(worker);
        if (inbox != NULL && inbox->events[EVENT_READ].ready)
            loop_post(loop, &inbox->events[EVENT_READ], QUEUE_NEXT);
    }
    siblings_retry(worker);
}

bool messages_open(struct worker *worker)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = run_local } };
    struct messages *messages = worker->messages;
    struct stream *stream = &worker->stream;

    if (messages != NULL)
        return true;
    messages = memory_alloc(stream->net.memory, sizeof(*messages));
    if (messages == NULL)
        return false;
    *messages =
        (struct messages) { .kind = MESSAGES_KIND, .retry.expired = siblings_retry_expired };
    worker->messages = messages;
    STAILQ_INIT(&messages->local_queue);
    TAILQ_INIT(&messages->siblings);
    TAILQ_INIT(&messages->gone);
    RB_INIT(&messages->unanswered);
    if (stream->last_name == 0)
        worker->random(worker, stream->name_key, sizeof(stream->name_key));
    messages->local = worker_source(worker, -1, &ops);
    if (messages->local != NULL)
        return true;
    log_write(&worker->log, LEVEL_CRIT, errno, "messages cannot be received");
    messages_done(worker);
    return false;
}

void messages_done(struct worker *worker)
{
    struct messages *messages = worker->messages;
    struct loop *loop = &worker->stream.net.loop;
    struct unanswered *unanswered;

    if (messages == NULL)
        return;
    CHECK_KIND(messages, MESSAGES_KIND);
    siblings_done(worker);
    while ((unanswered = RB_ROOT(&messages->unanswered)) != NULL)
        messages_await_not(worker, unanswered);
    messages_free(worker, &messages->local_queue);
    message_free(worker, messages->spare);
    timer_del(loop, &messages->retry);
    if (messages->local != NULL)
        source_close(loop, messages->local, false);
    if (messages->inbox != NULL)
        source_close(loop, messages->inbox, false);
    messages->kind = 0;
    memory_release(worker->stream.net.memory, messages);
    worker->messages = NULL;
}

void messages_check(const struct worker *worker)
{
    CHECK_KIND(worker->messages, MESSAGES_KIND);
    messages_check_unanswered(worker->messages);
    siblings_check(worker->messages);
}

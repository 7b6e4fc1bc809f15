/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends messages of connections and of workers. What cannot be sent is answered here, by the loop;
 * nothing is done by halves: without memory nothing is sent. */
#include "session/use.h"
#include "worker/messages_private.h"
#include "worker/references.h"

#include <string.h>

/* Messages that one connection, or one protocol's worker, may wait for the outcome of. */
#define UNANSWERED_MAX 1024
#define UNANSWERED_OF_WORKER_MAX 16384
/* Guesses of a connection, after which its references are looked up no more. */
#define GUESSES_MAX 64

/* Sends one message, and remembers that it waits for its outcome; its number, or 0. */
static uint64_t send_one(struct worker *worker, struct fb_worker *protocol, fb_ref from, fb_ref to,
    const void *p, size_t n)
{
    struct message_head head = { .from = from, .to = to, .protocol = protocol->mark };
    struct unanswered values = { .from = from, .to = to, .protocol = protocol->index };
    struct queued_message *message;
    struct unanswered *unanswered;

    head.number = values.number = ++worker->messages->last_number;
    message = message_create(worker, &head, p, n);
    unanswered = message != NULL ? messages_await(worker, &values) : NULL;
    if (unanswered == NULL) {
        message_free(worker, message);
        return 0;
    }
    if (!messages_queue(worker, message))
        messages_decide(worker, unanswered, FB_MESSAGE_BUSY);
    return head.number;
}

uint64_t messages_send(
    struct worker *worker, struct fb_conn *from, fb_ref to, const void *p, size_t n)
{
    fb_ref own = references_make(worker, from);
    struct session_use *use = session_use_of(from);
    unsigned index = session_server_of(from)->protocol_index;
    uint64_t number;

    if (own == 0 || n > FB_MESSAGE_MAX || use->unanswered >= UNANSWERED_MAX)
        return 0;
    if (use->guesses >= GUESSES_MAX && !references_is_worker(to))
        to = 0; /* unknown */
    number = send_one(worker, &worker->protocols[index], own, to, p, n);
    use->unanswered += number != 0;
    return number;
}

uint64_t messages_send_from_worker(struct fb_worker *from, fb_ref to, const void *p, size_t n)
{
    struct worker *worker = worker_of(from);
    uint64_t number;

    if (n > FB_MESSAGE_MAX || from->unanswered >= UNANSWERED_OF_WORKER_MAX ||
        !messages_open(worker))
        return 0;
    number = send_one(worker, from, references_own_worker(worker), to, p, n);
    from->unanswered += number != 0;
    return number;
}

/* Whether the protocol's messages to all are for this peer. One that has not answered our greeting
 * yet may run the protocol, and has had the greeting before the message. */
static bool is_receiver(const struct peer *peer, const struct fb_worker *handle)
{
    return ((peer->protocols | peer->unheard) >> handle->index & 1) != 0;
}

static unsigned count_receivers(const struct messages *messages, const struct fb_worker *handle)
{
    const struct peer *peer;
    unsigned n = 0;

    TAILQ_FOREACH (peer, &messages->peers, link)
        n += is_receiver(peer, handle);
    return n;
}

/* Creates a message for each receiver, with what waits for its outcome; false without memory, and
 * some may be there. */
static bool create_all(struct fb_worker *from, struct message_head *head,
    struct message_bytes *shared, size_t n, struct message_queue *queue)
{
    struct worker *worker = from->worker;
    struct queued_message *message;
    struct peer *peer;

    TAILQ_FOREACH (peer, &worker->messages->peers, link) {
        struct unanswered values = {
            .number = head->number,
            .from = head->from,
            .to = peer->id,
            .protocol = from->index,
            .is_unheard = (peer->unheard >> from->index & 1) != 0,
        };

        if (!is_receiver(peer, from))
            continue;
        head->to = peer->id;
        message = message_create_shared(worker, head, shared, n);
        if (message == NULL)
            return false;
        STAILQ_INSERT_TAIL(queue, message, link);
        message->waits = messages_await(worker, &values);
        if (message->waits == NULL)
            return false;
    }
    return true;
}

static void send_all(struct fb_worker *from, struct message_queue *queue)
{
    struct worker *worker = from->worker;
    struct queued_message *message;

    while ((message = STAILQ_FIRST(queue)) != NULL) {
        struct unanswered *unanswered = message->waits;

        STAILQ_REMOVE_HEAD(queue, link);
        if (!messages_queue(worker, message))
            messages_decide(worker, unanswered, FB_MESSAGE_BUSY);
    }
}

static void discard_all(struct worker *worker, struct message_queue *queue)
{
    struct queued_message *message;

    STAILQ_FOREACH (message, queue, link)
        if (message->waits != NULL)
            messages_await_not(worker, message->waits);
    messages_free(worker, queue);
}

/* A message that nobody is to receive has been handled. */
static uint64_t send_none(struct fb_worker *from, uint64_t number, fb_ref own)
{
    struct unanswered values = { .number = number, .from = own, .protocol = from->index };
    struct unanswered *unanswered = messages_await(from->worker, &values);

    if (unanswered == NULL)
        return 0;
    from->unanswered++;
    messages_decide(from->worker, unanswered, FB_MESSAGE_HANDLED);
    return number;
}

uint64_t messages_send_all(struct fb_worker *from, const void *p, size_t n)
{
    struct worker *worker = worker_of(from);
    struct message_head head = { .protocol = from->mark };
    struct message_queue queue = STAILQ_HEAD_INITIALIZER(queue);
    struct message_bytes *shared;
    unsigned receivers;
    bool created;

    if (n > FB_MESSAGE_MAX || !messages_open(worker))
        return 0;
    receivers = count_receivers(worker->messages, from);
    if (from->unanswered + (receivers > 0 ? receivers : 1) > UNANSWERED_OF_WORKER_MAX)
        return 0;
    head.from = references_own_worker(worker);
    head.number = ++worker->messages->last_number;
    if (receivers == 0)
        return send_none(from, head.number, head.from);
    shared = memory_alloc(messages_net(worker)->memory, sizeof(*shared) + n);
    if (shared == NULL)
        return 0;
    shared->users = 1; /* this one */
    if (n > 0)
        memcpy(shared->bytes, p, n);
    created = create_all(from, &head, shared, n, &queue);
    if (created)
        from->unanswered += receivers;
    else
        discard_all(worker, &queue);
    if (created)
        send_all(from, &queue);
    if (--shared->users == 0)
        memory_release(messages_net(worker)->memory, shared);
    return created ? head.number : 0;
}

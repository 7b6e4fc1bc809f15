/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends messages, and greets other workers. An unsendable message is answered by the loop; without
 * memory nothing is sent, not even a part.
 *
 * A starting worker greets all workers with a slot, and workers of another master; each greets
 * back, so that the later worker begins. Greetings are input: the master reports a sender without a
 * slot as gone when greeted back. */
#include "worker/messages.h"

#include "session/use.h"
#include "worker/messages_private.h"
#include "worker/references.h"

#include <errno.h>
#include <string.h>

/* Limits of unanswered messages, for a connection and for a protocol. */
#define UNANSWERED_MAX 1024
#define UNANSWERED_OF_WORKER_MAX 16384
/* Guesses of a connection, until all references are unknown. */
#define GUESSES_MAX 64

fb_ref messages_reference(struct worker *worker, struct fb_conn *conn)
{
    uint64_t name = messages_open(worker) ? session_name(conn) : 0;

    assert(name >> REFERENCES_NAME_BITS == 0);
    return name == 0 ? 0 : (fb_ref)references_own(worker) << REFERENCES_NAME_BITS | name;
}

/* Sends a message, and awaits the outcome; the message's number, or 0. */
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
    if (!peers_send(worker, message))
        messages_decide(worker, unanswered, FB_MESSAGE_BUSY);
    return head.number;
}

uint64_t messages_send(
    struct worker *worker, struct fb_conn *from, fb_ref to, const void *p, size_t n)
{
    fb_ref own = messages_reference(worker, from);
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

/* Whether messages to all are for this peer: also before the greeting is answered. */
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

/* Creates a message for each receiver; false without memory, with some in the queue. */
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
        message = message_create(worker, head, NULL, 0);
        if (message == NULL)
            return false;
        message->n = n;
        message->p = shared->bytes;
        message->shared = shared;
        shared->users++;
        STAILQ_INSERT_TAIL(queue, message, link);
        message->unanswered = messages_await(worker, &values);
        if (message->unanswered == NULL)
            return false;
    }
    return true;
}

static void send_all(struct fb_worker *from, struct message_queue *queue)
{
    struct worker *worker = from->worker;
    struct queued_message *message;

    while ((message = STAILQ_FIRST(queue)) != NULL) {
        struct unanswered *unanswered = message->unanswered;

        STAILQ_REMOVE_HEAD(queue, link);
        if (!peers_send(worker, message))
            messages_decide(worker, unanswered, FB_MESSAGE_BUSY);
    }
}

static void discard_all(struct worker *worker, struct message_queue *queue)
{
    struct queued_message *message;

    STAILQ_FOREACH (message, queue, link)
        if (message->unanswered != NULL)
            messages_await_not(worker, message->unanswered);
    messages_free(worker, queue);
}

/* Without receivers a message has been handled. */
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
    shared = memory_alloc(worker->stream.net.memory, sizeof(*shared) + n);
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
        memory_release(worker->stream.net.memory, shared);
    return created ? head.number : 0;
}

bool messages_are_unsent(const struct worker *worker)
{
    return worker->messages != NULL && worker->messages->queued_n > 0;
}

/* ---- Greetings ---- */

static int greet_slot(struct worker *worker, struct slot_id id)
{
    struct peer *peer = peers_get(worker, slot_incarnation(id));

    if (peer == NULL)
        return worker_fail(worker, errno, "no memory for the other workers");
    peer->id = references_of_slot(id);
    peers_greet(worker, peer);
    return 0;
}

int messages_greet_all(struct worker *worker)
{
    const struct shared *shared = worker->heritage->shared;
    const struct shared_published *published = shared->published;
    uint32_t n = published->slot_n;
    bool listens = false;

    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        listens = listens || worker_protocol_listens(&worker->protocols[i]);
    if (worker->channel == NULL || !listens)
        return 0;
    if (!messages_open(worker))
        return worker_fail(worker, errno, "no memory for messages of workers");
    for (uint32_t i = 0; i < n && i < SLOT_MAX; i++) {
        struct slot_id id = { .slot = shared->half * SLOT_MAX + i,
            .serial = published->slots[i].serial };

        if (id.serial != 0 && id.slot != worker->heritage->slot.slot &&
            greet_slot(worker, id) == -1)
            return -1;
    }
    channel_end_send(&worker->to_master, MESSAGE_OTHERS_WANTED);
    return 0;
}

void messages_greet_other(struct worker *worker, uint32_t incarnation)
{
    struct peer *peer;

    if (worker->phase >= WORKER_ENDING || incarnation == references_own(worker) ||
        !messages_open(worker))
        return;
    peer = peers_get(worker, incarnation);
    if (peer == NULL)
        log_write(&worker->log, LEVEL_CRIT, errno, "no memory for another worker");
    else if (!peer->greeted)
        peers_greet(worker, peer); /* the peer may be gone */
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends messages, and greets other workers. An unsendable message is answered by the loop; without
 * memory nothing is sent, not even a part. A starting worker greets all workers with a slot, and
 * workers of another master; each greets back, so that the later worker begins. Greetings are
 * input: the master reports a sender without a slot as gone when greeted back. */
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

/* Adds a message to the queue, and awaits the outcome; false without memory. */
static bool prepare_message(struct fb_worker *handle, const struct message_head *head,
    bool is_unheard, const void *p, size_t n, struct message_bytes *shared,
    struct message_queue *queue)
{
    struct queued_message *message = message_create(handle->worker, head, p, n, shared);

    if (message == NULL)
        return false;
    message->unanswered = messages_await(handle->worker, head, handle->index, is_unheard);
    STAILQ_INSERT_TAIL(queue, message, link);
    return message->unanswered != NULL;
}

/* Sends the queue, where all messages could be added, or nothing. */
static void send_queue(struct worker *worker, struct message_queue *queue, bool all_added)
{
    struct queued_message *message;

    while ((message = message_take(queue)) != NULL) {
        struct unanswered *unanswered = message->unanswered;

        if (all_added && !siblings_send(worker, message))
            messages_decide(worker, unanswered, FB_MESSAGE_BUSY);
        if (all_added)
            continue;
        if (unanswered != NULL)
            messages_await_not(worker, unanswered);
        message_free(worker, message);
    }
}

/* Sends a message, and awaits the outcome; the message's number, or 0. */
static uint64_t send_one(struct fb_worker *handle, fb_ref from, fb_ref to, const void *p, size_t n)
{
    struct message_head head = { ++handle->worker->messages->last_number, from, to, handle->mark,
        MESSAGE_IS_SENT };
    struct message_queue queue = STAILQ_HEAD_INITIALIZER(queue);
    bool is_added = prepare_message(handle, &head, false, p, n, NULL, &queue);

    send_queue(handle->worker, &queue, is_added);
    return is_added ? head.number : 0;
}

uint64_t messages_send(
    struct worker *worker, struct fb_conn *from, fb_ref to, const void *p, size_t n)
{
    fb_ref own = messages_reference(worker, from);
    struct session_use *use = session_use_of(from);
    uint64_t number;

    if (own == 0 || n > FB_MESSAGE_MAX || use->unanswered >= UNANSWERED_MAX)
        return 0;
    if (use->guesses >= GUESSES_MAX && !references_is_worker(to))
        to = 0; /* unknown */
    number = send_one(&worker->protocols[session_server_of(from)->protocol_index], own, to, p, n);
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
    number = send_one(from, references_own_worker(worker), to, p, n);
    from->unanswered += number != 0;
    return number;
}

/* Adds a message for each worker with the protocol, also before the worker has greeted back; a
 * message without receivers is handled. The number of answers, or -1 without memory. */
static int prepare_messages(struct fb_worker *from, struct message_head *head,
    struct message_bytes *shared, size_t n, struct message_queue *queue)
{
    struct unanswered *unanswered;
    struct sibling *sibling;
    int receiver_n = 0;

    TAILQ_FOREACH (sibling, &from->worker->messages->siblings, link) {
        bool is_unheard = (sibling->unheard >> from->index & 1) != 0;

        if (!is_unheard && (sibling->protocols >> from->index & 1) == 0)
            continue;
        head->to = sibling->id;
        if (!prepare_message(from, head, is_unheard, NULL, n, shared, queue))
            return -1;
        receiver_n++;
    }
    if (receiver_n > 0)
        return receiver_n;
    unanswered = messages_await(from->worker, head, from->index, false);
    if (unanswered == NULL)
        return -1;
    messages_decide(from->worker, unanswered, FB_MESSAGE_HANDLED);
    return 1;
}

uint64_t messages_send_all(struct fb_worker *from, const void *p, size_t n)
{
    struct worker *worker = worker_of(from);
    struct message_head head = { .from = references_own_worker(worker), .protocol = from->mark };
    struct message_queue queue = STAILQ_HEAD_INITIALIZER(queue);
    struct message_bytes *shared;
    int answer_n, most = UNANSWERED_OF_WORKER_MAX - (int)from->unanswered;
    bool sends;

    if (n > FB_MESSAGE_MAX || most <= 0 || !messages_open(worker))
        return 0;
    shared = memory_alloc(worker->stream.net.memory, sizeof(*shared) + n);
    if (shared == NULL)
        return 0;
    shared->users = 1; /* this function */
    if (n > 0)
        memcpy(shared->bytes, p, n);
    head.number = ++worker->messages->last_number;
    answer_n = prepare_messages(from, &head, shared, n, &queue);
    sends = answer_n > 0 && answer_n <= most;
    if (sends)
        from->unanswered += (unsigned)answer_n;
    send_queue(worker, &queue, sends);
    if (--shared->users == 0)
        memory_release(worker->stream.net.memory, shared);
    return sends ? head.number : 0;
}

bool messages_are_under_way(const struct worker *worker)
{
    bool any = worker->messages != NULL && worker->messages->queued_n > 0;

    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        any = any || worker->protocols[i].unanswered > 0;
    return any;
}

/* ---- Greetings ---- */

int messages_greet_all(struct worker *worker)
{
    const struct shared *shared = worker->heritage->shared;
    const struct shared_published *published = shared->published;
    uint32_t n = published->slot_n < SLOT_MAX ? published->slot_n : SLOT_MAX;
    bool listens = false;

    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        listens = listens || worker_protocol_listens(&worker->protocols[i]);
    if (worker->channel == NULL || !listens)
        return 0;
    if (!messages_open(worker))
        return worker_fail(worker, errno, "no memory for messages of workers");
    for (uint32_t i = 0; i < n; i++) {
        struct slot_id id = { shared->half * SLOT_MAX + i, published->slots[i].serial };
        struct sibling *sibling;

        if (id.serial == 0 || id.slot == worker->heritage->slot.slot)
            continue;
        sibling = siblings_get(worker, slot_incarnation(id));
        if (sibling == NULL)
            return worker_fail(worker, errno, "no memory for the list of workers");
        sibling->id = references_of_slot(id);
        siblings_greet(worker, sibling);
    }
    channel_end_send(&worker->to_master, MESSAGE_OTHERS_WANTED);
    return 0;
}

void messages_greet_other(struct worker *worker, uint32_t incarnation)
{
    struct sibling *sibling;

    if (worker->phase >= WORKER_ENDING || incarnation == references_own(worker) ||
        !messages_open(worker))
        return;
    sibling = siblings_get(worker, incarnation);
    if (sibling == NULL)
        log_write(&worker->log, LEVEL_CRIT, errno, "no memory for another worker");
    else if (!sibling->greeted)
        siblings_greet(worker, sibling); /* the sibling may be gone */
}

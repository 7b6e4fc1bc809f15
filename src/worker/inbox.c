/* SPDX-License-Identifier: BSD-2-Clause */
/* The inbox: a socket of packets that other workers send to. The master makes it, when the first of
 * them asks for it, and keeps its sending end. What comes is input, because any worker can send
 * anything there, or shut it down: packets that no worker sends are dropped. */
#include "base/check.h"
#include "os/descriptor.h"
#include "os/sockets.h"
#include "process/fd_passing.h"
#include "worker/messages_private.h"
#include "worker/references.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

/* Messages that are received before other events have their turn. */
#define MESSAGES_A_TURN 64

/* A packet, with a byte that is filled by one that is too long. */
struct packet {
    struct message_head head;
    uint8_t bytes[FB_MESSAGE_MAX + 1];
};

/* Whether a packet of this length is what another worker sends to us. */
static bool is_message(const struct worker *worker, const struct packet *packet, size_t n)
{
    const struct message_head *head = &packet->head;
    uint32_t own = references_own(worker);

    if (n < sizeof(*head) || n > sizeof(*head) + FB_MESSAGE_MAX)
        return false;
    if (references_incarnation(head->to) != own)
        return false;
    if (head->from == 0 || references_incarnation(head->from) == own)
        return false;
    if (head->outcome == MESSAGE_IS_SENT)
        return true;
    if (head->outcome == MESSAGE_IS_GREETING)
        return references_is_worker(head->from);
    return n == sizeof(*head) &&
           (head->outcome <= FB_MESSAGE_BUSY || head->outcome == MESSAGE_IS_GUESS);
}

/* Whether there is memory for the reply to the next message; without it messages wait in the
 * socket, and their senders with them. */
static bool has_spare(struct worker *worker)
{
    static const struct message_head none;
    struct messages *messages = worker->messages;

    if (messages->spare == NULL)
        messages->spare = message_create(worker, &none, NULL, 0);
    if (messages->spare == NULL && !messages->short_of_memory)
        log_write(&worker->log, LEVEL_CRIT, errno, "no memory to receive messages, they wait");
    messages->short_of_memory = messages->spare == NULL;
    if (messages->short_of_memory)
        peers_retry_soon(worker);
    return !messages->short_of_memory;
}

/* Drops an inbox that another worker has shut down; the master makes another one when it is asked
 * for. */
static void drop_inbox(struct worker *worker)
{
    log_write(&worker->log, LEVEL_ERROR, 0,
        "the socket of messages from other workers was shut down, another one is made");
    source_close(&messages_net(worker)->loop, worker->messages->inbox, false);
    worker->messages->inbox = NULL;
    channel_end_send(&worker->to_master, MESSAGE_INBOX_LOST);
}

void inbox_read(struct worker *worker, int most)
{
    struct source *source = worker->messages->inbox;
    struct packet packet;

    assert(source != NULL && source->in_use);
    for (int i = 0; i < most && has_spare(worker); i++) {
        int passed;
        ssize_t n =
            fd_receive(source->fd, &packet, sizeof(packet.head) + sizeof(packet.bytes), &passed);

        if (passed != -1)
            descriptor_discard(passed);
        if (n == -1 && (errno == EINTR || errno == ECONNRESET))
            continue;
        if (n == 0 && os_socket_is_closed(source->fd)) {
            drop_inbox(worker);
            return;
        }
        if (n == -1) { /* none is left */
            source->events[EVENT_READ].ready = false;
            return;
        }
        if (!is_message(worker, &packet, (size_t)n))
            continue;
        if (messages_receive(worker, &packet.head,
                (fb_bytes) { packet.bytes, (size_t)n - sizeof(packet.head) },
                worker->messages->spare))
            worker->messages->spare = NULL;
        net_flush(messages_net(worker));
    }
}

static void inbox_readable(struct loop *loop, struct source *source)
{
    struct worker *worker = worker_of_loop(loop);

    CHECK_KIND(worker->messages, MESSAGES_KIND);
    assert(source == worker->messages->inbox);
    inbox_read(worker, MESSAGES_A_TURN);
    if (worker->messages->inbox != NULL && source->events[EVENT_READ].ready &&
        !worker->messages->short_of_memory)
        loop_post(loop, &source->events[EVENT_READ], QUEUE_NEXT);
}

void inbox_retry(struct worker *worker)
{
    struct source *source = worker->messages->inbox;

    if (!worker->messages->short_of_memory)
        return;
    worker->messages->short_of_memory = source != NULL;
    messages_post_local(worker);
    if (source != NULL && source->events[EVENT_READ].ready)
        loop_post(&messages_net(worker)->loop, &source->events[EVENT_READ], QUEUE_NEXT);
}

void inbox_open(struct worker *worker, struct channel_message *message)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = inbox_readable } };
    struct loop *loop = &messages_net(worker)->loop;
    struct source *source;

    if (message->fd == -1 || !messages_open(worker) || worker->messages->inbox != NULL) {
        if (worker->messages == NULL || worker->messages->inbox == NULL)
            channel_end_send(&worker->to_master, MESSAGE_INBOX_LOST);
        return;
    }
    source = messages_source(worker, message->fd, &ops);
    if (source == NULL || source_arm(loop, source, EVENT_READ) == -1) {
        log_write(&worker->log, LEVEL_CRIT, errno, "messages cannot be received");
        if (source != NULL) {
            message->fd = -1;
            source_close(loop, source, false);
        }
        channel_end_send(&worker->to_master, MESSAGE_INBOX_LOST);
        return;
    }
    message->fd = -1;
    worker->messages->inbox = source;
}

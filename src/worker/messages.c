/* SPDX-License-Identifier: BSD-2-Clause */
/* The message queues of a worker: opens and closes them, keeps the queue of messages to this worker
 * itself, and has the loop run what is to be done without another worker. Reports run on the loop,
 * never within the call that sends. */
#include "worker/messages.h"

#include "base/check.h"
#include "worker/messages_private.h"
#include "worker/references.h"

#include <errno.h>
#include <string.h>

/* Messages that are received before an outcome is decided here, or a worker has gone: it may have
 * sent them before it went. */
#define REPLIES_MAX 4096

struct queued_message *message_create(
    struct worker *worker, const struct message_head *head, const void *p, size_t n)
{
    struct queued_message *message =
        memory_alloc(messages_net(worker)->memory, sizeof(*message) + n);

    if (message == NULL)
        return NULL;
    message->head = *head;
    message->n = n;
    message->p = message->own;
    message->shared = NULL;
    message->waits = NULL;
    if (n > 0)
        memcpy(message->own, p, n);
    return message;
}

struct queued_message *message_create_shared(
    struct worker *worker, const struct message_head *head, struct message_bytes *shared, size_t n)
{
    struct queued_message *message = message_create(worker, head, NULL, 0);

    if (message == NULL)
        return NULL;
    message->n = n;
    message->p = shared->bytes;
    message->shared = shared;
    shared->users++;
    return message;
}

void message_free(struct worker *worker, struct queued_message *message)
{
    const struct memory *memory = messages_net(worker)->memory;

    if (message == NULL)
        return;
    assert(message->shared == NULL || message->shared->users > 0);
    if (message->shared != NULL && --message->shared->users == 0)
        memory_release(memory, message->shared);
    memory_release(memory, message);
}

void messages_free(struct worker *worker, struct message_queue *queue)
{
    struct queued_message *message;

    while ((message = STAILQ_FIRST(queue)) != NULL) {
        STAILQ_REMOVE_HEAD(queue, link);
        message_free(worker, message);
    }
}

void messages_post_local(struct worker *worker)
{
    struct event *event = &worker->messages->local->events[EVENT_READ];

    loop_post(&messages_net(worker)->loop, event, QUEUE_NEXT);
}

bool messages_queue(struct worker *worker, struct queued_message *message)
{
    if (references_incarnation(message->head.to) != references_own(worker))
        return peers_send(worker, message);
    STAILQ_INSERT_TAIL(&worker->messages->local_queue, message, link);
    messages_post_local(worker);
    return true;
}

/* Receives the local queue, reports what was decided here, and tells who has gone. */
static void run_local(struct loop *loop, struct source *source)
{
    struct worker *worker = worker_of_loop(loop);
    struct messages *messages = worker->messages;
    struct message_queue queue = STAILQ_HEAD_INITIALIZER(queue);
    struct queued_message *message;

    CHECK_KIND(messages, MESSAGES_KIND);
    assert(source == messages->local);
    STAILQ_CONCAT(&queue, &messages->local_queue);
    while ((message = STAILQ_FIRST(&queue)) != NULL) {
        STAILQ_REMOVE_HEAD(&queue, link);
        if (!messages_receive(
                worker, &message->head, (fb_bytes) { message->p, message->n }, message))
            message_free(worker, message);
        net_flush(messages_net(worker));
    }
    if ((messages->decided_n > 0 || !TAILQ_EMPTY(&messages->gone)) && messages->inbox != NULL)
        inbox_read(worker, REPLIES_MAX);
    messages_report_decided(worker);
    if (!messages->short_of_memory) /* otherwise some of their messages may wait in the inbox */
        messages_tell_gone(worker);
}

struct source *messages_source(struct worker *worker, int fd, const struct source_ops *ops)
{
    struct source *source = source_get(&messages_net(worker)->loop.sources);

    if (source == NULL)
        return NULL;
    source->fd = fd;
    source->ops = ops;
    source->io = &io_socket;
    return source;
}

bool messages_open(struct worker *worker)
{
    static const struct source_ops ops = { .run = { [EVENT_READ] = run_local } };
    struct messages *messages = worker->messages;
    struct stream *stream = &worker->stream;

    if (messages != NULL)
        return true;
    messages = memory_alloc(messages_net(worker)->memory, sizeof(*messages));
    if (messages == NULL)
        return false;
    *messages = (struct messages) { .kind = MESSAGES_KIND, .retry.expired = peers_retry_expired };
    worker->messages = messages;
    STAILQ_INIT(&messages->local_queue);
    TAILQ_INIT(&messages->peers);
    TAILQ_INIT(&messages->gone);
    RB_INIT(&messages->unanswered);
    if (stream->last_name == 0)
        worker->random(worker, stream->name_key, sizeof(stream->name_key));
    messages->local = messages_source(worker, -1, &ops);
    if (messages->local != NULL)
        return true;
    log_write(&worker->log, LEVEL_CRIT, errno, "messages cannot be received");
    messages_done(worker);
    return false;
}

void messages_done(struct worker *worker)
{
    struct messages *messages = worker->messages;
    struct loop *loop = &messages_net(worker)->loop;
    struct unanswered *unanswered;

    if (messages == NULL)
        return;
    CHECK_KIND(messages, MESSAGES_KIND);
    peers_done(worker);
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
    memory_release(messages_net(worker)->memory, messages);
    worker->messages = NULL;
}

bool messages_are_unsent(const struct worker *worker)
{
    return worker->messages != NULL && worker->messages->queued_n > 0;
}

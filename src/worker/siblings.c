/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues to other workers. A sibling is made by the first message or greeting in either
 * direction, and freed when the master reports the end of its worker. A message stays queued until
 * the inbox has taken it; the greeting, with the marks of this worker's protocols, goes first. */
#include "worker/messages_private.h"
#include "worker/references.h"

#include <errno.h>
#include <unistd.h>

/* Limits of queued messages, and of replies, for a sibling and for all: a sibling may never
 * read. */
#define QUEUED_MAX 4096
#define REPLIES_MAX 16384
#define QUEUED_IN_ALL_MAX 65536
/* Limits of siblings, and of requests to the master at once: references may be forged. */
#define SIBLINGS_MAX (SLOT_HALVES * SLOT_MAX)
#define ASKED_MAX 64
/* Retry limit for an inbox after a shutdown(), RETRY_MS apart. */
#define LOST_MAX 100
#define RETRY_MS 5
/* Until an inbox is asked for again for which there was no descriptor. */
#define SHORT_MS 100

/* The master takes four times as much for an attack. */
static const struct token_rate ask_rate = { .burst = 1024, .per_second = 250 };

/* Makes the retry timer run at `at` or before. */
static void retry_at(struct worker *worker, uint64_t at)
{
    struct timer *retry = &worker->messages->retry;
    struct loop *loop = &worker->stream.net.loop;
    uint64_t now = loop->clock.mono_ms;

    if (!timer_is_set(retry) || retry->deadline > at)
        timer_set(loop, retry, at > now ? at - now : 0);
}

void siblings_retry_soon(struct worker *worker)
{
    retry_at(worker, worker->stream.net.loop.clock.mono_ms + RETRY_MS);
}

struct sibling *siblings_find(struct messages *messages, uint32_t incarnation)
{
    struct sibling *sibling;

    TAILQ_FOREACH (sibling, &messages->siblings, link)
        if (sibling->incarnation == incarnation)
            return sibling;
    return NULL;
}

/* Asks the master for the sibling's inbox, now or later. */
static void ask_for_sibling_inbox(struct worker *worker, struct sibling *sibling)
{
    struct messages *messages = worker->messages;
    uint64_t now = worker->stream.net.loop.clock.mono_ms;

    assert(sibling->fd == -1 && !sibling->asked);
    if (sibling->ask_at > now) {
        retry_at(worker, sibling->ask_at);
        return;
    }
    sibling->asked =
        messages->asked_n < ASKED_MAX && token_bucket_take(&messages->asks, &ask_rate, now) &&
        channel_end_try(&worker->to_master,
            &(struct channel_message) { MESSAGE_INBOX_WANTED, sibling->incarnation, -1 });
    messages->asked_n += sibling->asked;
    if (!sibling->asked)
        siblings_retry_soon(worker);
}

struct sibling *siblings_get(struct worker *worker, uint32_t incarnation)
{
    struct messages *messages = worker->messages;
    struct sibling *sibling = siblings_find(messages, incarnation);

    if (sibling != NULL)
        return sibling;
    assert(incarnation != references_own(worker));
    errno = ENOMEM;
    if (messages->sibling_n >= SIBLINGS_MAX)
        return NULL;
    sibling = memory_alloc(worker->stream.net.memory, sizeof(*sibling));
    if (sibling == NULL)
        return NULL;
    *sibling = (struct sibling) { .incarnation = incarnation, .fd = -1 };
    STAILQ_INIT(&sibling->queue);
    TAILQ_INSERT_TAIL(&messages->siblings, sibling, link);
    messages->sibling_n++;
    ask_for_sibling_inbox(worker, sibling);
    return sibling;
}

static void put_sibling(struct worker *worker, struct sibling *sibling)
{
    struct messages *messages = worker->messages;

    assert(messages->queued_n >= sibling->queued_n && messages->sibling_n > 0);
    messages->queued_n -= sibling->queued_n;
    messages_free(worker, &sibling->queue);
    if (sibling->fd != -1)
        close(sibling->fd);
    messages->asked_n -= sibling->asked;
    messages->sibling_n--;
    TAILQ_REMOVE(&messages->siblings, sibling, link);
    if (sibling->protocols == 0) {
        memory_release(worker->stream.net.memory, sibling);
        return;
    }
    TAILQ_INSERT_TAIL(&messages->gone, sibling, link);
    messages_post_local(worker);
}

/* Answers "unknown" for a worker that has gone. */
static void end_sibling(struct worker *worker, struct sibling *sibling)
{
    uint32_t incarnation = sibling->incarnation;

    put_sibling(worker, sibling);
    messages_decide_unknown(worker, incarnation);
}

/* Sends from the queue what the inbox takes; ends the sibling where no inbox will take the rest. */
static void deliver_queue(struct worker *worker, struct sibling *sibling)
{
    struct queued_message *first;

    while (sibling->fd != -1 && (first = STAILQ_FIRST(&sibling->queue)) != NULL) {
        struct iovec pieces[] = { { &first->head, sizeof(first->head) },
            { (void *)first->p, first->n } };
        struct msghdr packet = { .msg_iov = pieces, .msg_iovlen = 2 };

        if (sendmsg(sibling->fd, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) != -1) {
            assert(sibling->queued_n > 0);
            STAILQ_REMOVE_HEAD(&sibling->queue, link);
            sibling->lost_n = 0;
            sibling->queued_n--;
            worker->messages->queued_n--;
            message_free(worker, first);
        } else if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
            timer_set(&worker->stream.net.loop, &worker->messages->retry, RETRY_MS);
            return;
        } else if (errno != EINTR) { /* a shutdown(): a new inbox is asked for */
            close(sibling->fd);
            sibling->fd = -1;
            sibling->lost_n++;
            siblings_retry_soon(worker);
        }
    }
    if (sibling->fd == -1 && (worker->channel == NULL || sibling->lost_n > LOST_MAX))
        end_sibling(worker, sibling);
}

static bool is_of_other_master(const struct worker *worker, const struct sibling *sibling)
{
    return slot_half_of(sibling->incarnation) != slot_half_of(references_own(worker));
}

void siblings_gone(struct worker *worker, uint32_t argument)
{
    bool is_of_all = (argument & CHANNEL_OTHERS_GONE) != 0;
    struct sibling *sibling, *next;

    if (worker->messages == NULL)
        return;
    TAILQ_FOREACH_SAFE (sibling, &worker->messages->siblings, link, next)
        if (is_of_all ? is_of_other_master(worker, sibling) &&
                            (slot_serial_is_until(sibling->incarnation, argument) ||
                                (sibling->asked && sibling->id == 0))
                      : sibling->incarnation == argument)
            end_sibling(worker, sibling);
}

void siblings_master_gone(struct worker *worker)
{
    struct sibling *sibling, *next;

    assert(worker->channel == NULL);
    if (worker->messages == NULL)
        return;
    TAILQ_FOREACH_SAFE (sibling, &worker->messages->siblings, link, next)
        if (sibling->fd == -1 ||
            is_of_other_master(worker, sibling)) /* told that this worker has gone */
            end_sibling(worker, sibling);
}

void siblings_open(struct worker *worker, struct channel_message *message)
{
    struct messages *messages = worker->messages;
    struct sibling *sibling = messages != NULL ? siblings_find(messages, message->argument) : NULL;

    if (sibling == NULL || sibling->fd != -1)
        return;
    messages->asked_n -= sibling->asked;
    sibling->asked = false;
    if (message->fd == -1) { /* the master had no descriptor for the inbox */
        if (sibling->ask_at == 0)
            log_write(&worker->log, LEVEL_CRIT, EMFILE, "messages to another worker wait");
        sibling->ask_at = worker->stream.net.loop.clock.mono_ms + SHORT_MS;
        retry_at(worker, sibling->ask_at);
        return;
    }
    sibling->fd = message->fd;
    sibling->ask_at = 0;
    message->fd = -1;
    deliver_queue(worker, sibling);
}

static void queue_for_sibling(
    struct worker *worker, struct sibling *sibling, struct queued_message *message)
{
    STAILQ_INSERT_TAIL(&sibling->queue, message, link);
    sibling->queued_n++;
    worker->messages->queued_n++;
    deliver_queue(worker, sibling);
}

bool siblings_send(struct worker *worker, struct queued_message *message)
{
    struct messages *messages = worker->messages;
    uint32_t incarnation = references_incarnation(message->head.to);
    bool reply = message->head.outcome != MESSAGE_IS_SENT;
    struct sibling *sibling;

    if (incarnation == references_own(worker)) {
        STAILQ_INSERT_TAIL(&messages->local_queue, message, link);
        messages_post_local(worker);
        return true;
    }
    sibling = siblings_get(worker, incarnation);
    if (sibling != NULL && !reply && (sibling->refuses != 0 || sibling->queued_n >= QUEUED_MAX))
        sibling->refuses |= SIBLING_IS_FLOODED; /* the next ones would overtake this one */
    else if (sibling != NULL && (!reply || (sibling->queued_n < REPLIES_MAX &&
                                               messages->queued_n < QUEUED_IN_ALL_MAX))) {
        queue_for_sibling(worker, sibling, message);
        return true;
    }
    message_free(worker, message);
    return false;
}

void siblings_greet(struct worker *worker, struct sibling *sibling)
{
    struct message_head head = {
        .from = references_own_worker(worker),
        .to = sibling->id != 0 ? sibling->id : (fb_ref)sibling->incarnation << REFERENCES_NAME_BITS,
        .outcome = MESSAGE_IS_GREETING,
    };
    uint64_t marks[STREAM_PROTOCOLS_MAX], listening = 0;
    struct queued_message *greeting;
    size_t n = 0;

    assert(!sibling->greeted);
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        if (worker_protocol_listens(&worker->protocols[i])) {
            marks[n++] = worker->protocols[i].mark;
            listening |= UINT64_C(1) << i;
        }
    greeting = message_create(worker, &head, marks, n * sizeof(marks[0]), NULL);
    sibling->greeted = greeting != NULL;
    sibling->to_greet = !sibling->greeted;
    if (sibling->greeted && sibling->protocols == 0 && sibling->id != 0)
        sibling->unheard = listening;
    if (sibling->greeted)
        queue_for_sibling(worker, sibling, greeting);
    else
        siblings_retry_soon(worker);
}

void siblings_retry(struct worker *worker)
{
    struct sibling *sibling, *next;

    TAILQ_FOREACH_SAFE (sibling, &worker->messages->siblings, link, next) {
        if (sibling->fd == -1 && !sibling->asked)
            ask_for_sibling_inbox(worker, sibling);
        if (sibling->to_greet)
            siblings_greet(worker, sibling);
        else
            deliver_queue(worker, sibling);
    }
}

void siblings_take_again(struct worker *worker)
{
    struct sibling *sibling;

    TAILQ_FOREACH (sibling, &worker->messages->siblings, link)
        sibling->refuses &= SIBLING_IS_HELD;
}

void siblings_done(struct worker *worker)
{
    struct messages *messages = worker->messages;
    struct sibling *sibling;

    while (!TAILQ_EMPTY(&messages->siblings))
        put_sibling(worker, TAILQ_FIRST(&messages->siblings));
    while ((sibling = TAILQ_FIRST(&messages->gone)) != NULL) {
        TAILQ_REMOVE(&messages->gone, sibling, link);
        memory_release(worker->stream.net.memory, sibling);
    }
}

void siblings_check(const struct messages *messages)
{
    const struct sibling *sibling;
    unsigned n = 0, asked_n = 0, queued_n = 0;

    TAILQ_FOREACH (sibling, &messages->siblings, link) {
        assert((sibling->queued_n == 0) == STAILQ_EMPTY(&sibling->queue));
        assert(sibling->fd == -1 || sibling->queued_n == 0 || timer_is_set(&messages->retry));
        assert(sibling->fd != -1 || sibling->asked || timer_is_set(&messages->retry));
        assert(!sibling->to_greet || (!sibling->greeted && timer_is_set(&messages->retry)));
        assert(sibling->protocols == 0 || sibling->id != 0);
        assert(sibling->unheard == 0 ||
               (sibling->greeted && sibling->protocols == 0 && sibling->id != 0));
        n++;
        assert(!sibling->asked || sibling->fd == -1);
        asked_n += sibling->asked;
        queued_n += sibling->queued_n;
    }
    assert(n == messages->sibling_n && asked_n == messages->asked_n && asked_n <= ASKED_MAX);
    assert(queued_n == messages->queued_n);
}

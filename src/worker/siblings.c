/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues to other workers. A peer is made by the first message or greeting in either direction,
 * and freed when the master reports the end of its worker. A message stays queued until the inbox
 * has taken it; the greeting, with the marks of this worker's protocols, goes first. */
#include "worker/messages_private.h"
#include "worker/references.h"

#include <errno.h>
#include <unistd.h>

/* Limits of queued messages, and of replies, for a peer and for all: a peer may never read. */
#define QUEUED_MAX 4096
#define REPLIES_MAX 16384
#define QUEUED_IN_ALL_MAX 65536
/* Limits of peers, and of requests to the master at once: references may be forged. */
#define PEERS_MAX (SLOT_HALVES * SLOT_MAX)
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

void peers_retry_soon(struct worker *worker)
{
    retry_at(worker, worker->stream.net.loop.clock.mono_ms + RETRY_MS);
}

struct peer *peers_find(struct messages *messages, uint32_t incarnation)
{
    struct peer *peer;

    TAILQ_FOREACH (peer, &messages->peers, link)
        if (peer->incarnation == incarnation)
            return peer;
    return NULL;
}

/* Asks the master for the peer's inbox, now or later. */
static void ask_for_peer_inbox(struct worker *worker, struct peer *peer)
{
    struct messages *messages = worker->messages;
    uint64_t now = worker->stream.net.loop.clock.mono_ms;

    assert(peer->fd == -1 && !peer->asked);
    if (peer->ask_at > now) {
        retry_at(worker, peer->ask_at);
        return;
    }
    peer->asked = messages->asked_n < ASKED_MAX &&
                  token_bucket_take(&messages->asks, &ask_rate, now) &&
                  channel_end_try(&worker->to_master,
                      &(struct channel_message) { MESSAGE_INBOX_WANTED, peer->incarnation, -1 });
    messages->asked_n += peer->asked;
    if (!peer->asked)
        peers_retry_soon(worker);
}

struct peer *peers_get(struct worker *worker, uint32_t incarnation)
{
    struct messages *messages = worker->messages;
    struct peer *peer = peers_find(messages, incarnation);

    if (peer != NULL)
        return peer;
    assert(incarnation != references_own(worker));
    errno = ENOMEM;
    if (messages->peer_n >= PEERS_MAX)
        return NULL;
    peer = memory_alloc(worker->stream.net.memory, sizeof(*peer));
    if (peer == NULL)
        return NULL;
    *peer = (struct peer) { .incarnation = incarnation, .fd = -1 };
    STAILQ_INIT(&peer->queue);
    TAILQ_INSERT_TAIL(&messages->peers, peer, link);
    messages->peer_n++;
    ask_for_peer_inbox(worker, peer);
    return peer;
}

static void put_peer(struct worker *worker, struct peer *peer)
{
    struct messages *messages = worker->messages;

    assert(messages->queued_n >= peer->queued_n && messages->peer_n > 0);
    messages->queued_n -= peer->queued_n;
    messages_free(worker, &peer->queue);
    if (peer->fd != -1)
        close(peer->fd);
    messages->asked_n -= peer->asked;
    messages->peer_n--;
    TAILQ_REMOVE(&messages->peers, peer, link);
    if (peer->protocols == 0) {
        memory_release(worker->stream.net.memory, peer);
        return;
    }
    TAILQ_INSERT_TAIL(&messages->gone, peer, link);
    messages_post_local(worker);
}

/* Answers "unknown" for a worker that has gone. */
static void end_peer(struct worker *worker, struct peer *peer)
{
    uint32_t incarnation = peer->incarnation;

    put_peer(worker, peer);
    messages_decide_unknown(worker, incarnation);
}

/* Sends from the queue what the inbox takes; ends the peer where no inbox will take the rest. */
static void deliver_queue(struct worker *worker, struct peer *peer)
{
    struct queued_message *first;

    while (peer->fd != -1 && (first = STAILQ_FIRST(&peer->queue)) != NULL) {
        struct iovec pieces[] = { { &first->head, sizeof(first->head) },
            { (void *)first->p, first->n } };
        struct msghdr packet = { .msg_iov = pieces, .msg_iovlen = 2 };

        if (sendmsg(peer->fd, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) != -1) {
            assert(peer->queued_n > 0);
            STAILQ_REMOVE_HEAD(&peer->queue, link);
            peer->lost_n = 0;
            peer->queued_n--;
            worker->messages->queued_n--;
            message_free(worker, first);
        } else if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
            timer_set(&worker->stream.net.loop, &worker->messages->retry, RETRY_MS);
            return;
        } else if (errno != EINTR) { /* a shutdown(): a new inbox is asked for */
            close(peer->fd);
            peer->fd = -1;
            peer->lost_n++;
            peers_retry_soon(worker);
        }
    }
    if (peer->fd == -1 && (worker->channel == NULL || peer->lost_n > LOST_MAX))
        end_peer(worker, peer);
}

static bool is_of_other_master(const struct worker *worker, const struct peer *peer)
{
    return slot_half_of(peer->incarnation) != slot_half_of(references_own(worker));
}

void peers_gone(struct worker *worker, uint32_t argument)
{
    bool is_of_all = (argument & CHANNEL_OTHERS_GONE) != 0;
    struct peer *peer, *next;

    if (worker->messages == NULL)
        return;
    TAILQ_FOREACH_SAFE (peer, &worker->messages->peers, link, next)
        if (is_of_all ? is_of_other_master(worker, peer) &&
                            (slot_serial_is_until(peer->incarnation, argument) ||
                                (peer->asked && peer->id == 0))
                      : peer->incarnation == argument)
            end_peer(worker, peer);
}

void peers_master_gone(struct worker *worker)
{
    struct peer *peer, *next;

    assert(worker->channel == NULL);
    if (worker->messages == NULL)
        return;
    TAILQ_FOREACH_SAFE (peer, &worker->messages->peers, link, next)
        if (peer->fd == -1 || is_of_other_master(worker, peer)) /* told that this worker has gone */
            end_peer(worker, peer);
}

void peers_open(struct worker *worker, struct channel_message *message)
{
    struct messages *messages = worker->messages;
    struct peer *peer = messages != NULL ? peers_find(messages, message->argument) : NULL;

    if (peer == NULL || peer->fd != -1)
        return;
    messages->asked_n -= peer->asked;
    peer->asked = false;
    if (message->fd == -1) { /* the master had no descriptor for the inbox */
        if (peer->ask_at == 0)
            log_write(&worker->log, LEVEL_CRIT, EMFILE, "messages to another worker wait");
        peer->ask_at = worker->stream.net.loop.clock.mono_ms + SHORT_MS;
        retry_at(worker, peer->ask_at);
        return;
    }
    peer->fd = message->fd;
    peer->ask_at = 0;
    message->fd = -1;
    deliver_queue(worker, peer);
}

static void queue_message(struct worker *worker, struct peer *peer, struct queued_message *message)
{
    STAILQ_INSERT_TAIL(&peer->queue, message, link);
    peer->queued_n++;
    worker->messages->queued_n++;
    deliver_queue(worker, peer);
}

bool peers_send(struct worker *worker, struct queued_message *message)
{
    struct messages *messages = worker->messages;
    uint32_t incarnation = references_incarnation(message->head.to);
    bool reply = message->head.outcome != MESSAGE_IS_SENT;
    struct peer *peer;

    if (incarnation == references_own(worker)) {
        STAILQ_INSERT_TAIL(&messages->local_queue, message, link);
        messages_post_local(worker);
        return true;
    }
    peer = peers_get(worker, incarnation);
    if (peer != NULL && !reply && (peer->refuses != 0 || peer->queued_n >= QUEUED_MAX))
        peer->refuses |= PEER_IS_FLOODED; /* the next ones would overtake this one */
    else if (peer != NULL &&
             (!reply || (peer->queued_n < REPLIES_MAX && messages->queued_n < QUEUED_IN_ALL_MAX))) {
        queue_message(worker, peer, message);
        return true;
    }
    message_free(worker, message);
    return false;
}

void peers_greet(struct worker *worker, struct peer *peer)
{
    struct message_head head = {
        .from = references_own_worker(worker),
        .to = peer->id != 0 ? peer->id : (fb_ref)peer->incarnation << REFERENCES_NAME_BITS,
        .outcome = MESSAGE_IS_GREETING,
    };
    uint64_t marks[STREAM_PROTOCOLS_MAX], listening = 0;
    struct queued_message *greeting;
    size_t n = 0;

    assert(!peer->greeted);
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        if (worker_protocol_listens(&worker->protocols[i])) {
            marks[n++] = worker->protocols[i].mark;
            listening |= UINT64_C(1) << i;
        }
    greeting = message_create(worker, &head, marks, n * sizeof(marks[0]), NULL);
    peer->greeted = greeting != NULL;
    peer->to_greet = !peer->greeted;
    if (peer->greeted && peer->protocols == 0 && peer->id != 0)
        peer->unheard = listening;
    if (peer->greeted)
        queue_message(worker, peer, greeting);
    else
        peers_retry_soon(worker);
}

void peers_retry(struct worker *worker)
{
    struct peer *peer, *next;

    TAILQ_FOREACH_SAFE (peer, &worker->messages->peers, link, next) {
        if (peer->fd == -1 && !peer->asked)
            ask_for_peer_inbox(worker, peer);
        if (peer->to_greet)
            peers_greet(worker, peer);
        else
            deliver_queue(worker, peer);
    }
}

void peers_take_again(struct worker *worker)
{
    struct peer *peer;

    TAILQ_FOREACH (peer, &worker->messages->peers, link)
        peer->refuses &= PEER_IS_HELD;
}

void peers_done(struct worker *worker)
{
    struct messages *messages = worker->messages;
    struct peer *peer;

    while (!TAILQ_EMPTY(&messages->peers))
        put_peer(worker, TAILQ_FIRST(&messages->peers));
    while ((peer = TAILQ_FIRST(&messages->gone)) != NULL) {
        TAILQ_REMOVE(&messages->gone, peer, link);
        memory_release(worker->stream.net.memory, peer);
    }
}

void peers_check(const struct messages *messages)
{
    const struct peer *peer;
    unsigned n = 0, asked_n = 0, queued_n = 0;

    TAILQ_FOREACH (peer, &messages->peers, link) {
        assert((peer->queued_n == 0) == STAILQ_EMPTY(&peer->queue));
        assert(peer->fd == -1 || peer->queued_n == 0 || timer_is_set(&messages->retry));
        assert(peer->fd != -1 || peer->asked || timer_is_set(&messages->retry));
        assert(!peer->to_greet || (!peer->greeted && timer_is_set(&messages->retry)));
        assert(peer->protocols == 0 || peer->id != 0);
        assert(peer->unheard == 0 || (peer->greeted && peer->protocols == 0 && peer->id != 0));
        n++;
        assert(!peer->asked || peer->fd == -1);
        asked_n += peer->asked;
        queued_n += peer->queued_n;
    }
    assert(n == messages->peer_n && asked_n == messages->asked_n && asked_n <= ASKED_MAX);
    assert(queued_n == messages->queued_n);
}

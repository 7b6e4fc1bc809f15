/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues to other workers. A peer is made by the first message to it and goes when the master
 * says that its worker has gone; a message stays in its queue until the peer's inbox has taken
 * it. */
#include "worker/peers.h"

#include "base/check.h"
#include "worker/commands.h"
#include "worker/messages_private.h"
#include "worker/references.h"

#include <errno.h>
#include <unistd.h>

/* Messages that wait for a peer which does not receive them; replies are queued beyond that. */
#define QUEUED_MAX 4096
#define RETRY_MS 5

static struct peer *find_peer(struct messages *messages, uint32_t incarnation)
{
    struct peer *peer;

    LIST_FOREACH (peer, &messages->peers, link)
        if (peer->incarnation == incarnation)
            return peer;
    return NULL;
}

/* The peer of that incarnation, which may be new: then the master is asked for its inbox. NULL
 * without memory. */
static struct peer *get_peer(struct fb_worker *worker, uint32_t incarnation)
{
    struct peer *peer = find_peer(worker->messages, incarnation);

    if (peer != NULL)
        return peer;
    assert(incarnation != references_own(worker));
    peer = memory_alloc(messages_net(worker)->memory, sizeof(*peer));
    if (peer == NULL)
        return NULL;
    *peer = (struct peer) { .incarnation = incarnation, .fd = -1 };
    STAILQ_INIT(&peer->queue);
    LIST_INSERT_HEAD(&worker->messages->peers, peer, link);
    worker_send_with(worker, MESSAGE_INBOX_WANTED, incarnation, -1);
    return peer;
}

static void put_peer(struct fb_worker *worker, struct peer *peer)
{
    messages_free(worker, &peer->queue);
    if (peer->fd != -1)
        close(peer->fd);
    LIST_REMOVE(peer, link);
    memory_release(messages_net(worker)->memory, peer);
}

/* Sends from the queue what the peer's inbox takes; false when the peer has gone. */
static bool deliver(struct fb_worker *worker, struct peer *peer)
{
    struct queued_message *first;

    while (peer->fd != -1 && (first = STAILQ_FIRST(&peer->queue)) != NULL) {
        struct iovec pieces[] = { { &first->head, sizeof(first->head) },
            { first->bytes, first->n } };
        struct msghdr packet = { .msg_iov = pieces, .msg_iovlen = 2 };

        if (sendmsg(peer->fd, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) == -1) {
            if (errno == EINTR)
                continue;
            if (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM)
                return false;
            timer_set(&messages_net(worker)->loop, &worker->messages->retry, RETRY_MS);
            return true;
        }
        assert(peer->queued_n > 0);
        STAILQ_REMOVE_HEAD(&peer->queue, link);
        peer->queued_n--;
        memory_release(messages_net(worker)->memory, first);
    }
    return true;
}

void peers_retry_expired(struct loop *loop, struct timer *timer)
{
    struct fb_worker *worker = worker_of_loop(loop);
    struct peer *peer, *next;

    CHECK_KIND(worker->messages, MESSAGES_KIND);
    assert(timer == &worker->messages->retry);
    LIST_FOREACH_SAFE (peer, &worker->messages->peers, link, next)
        if (!deliver(worker, peer))
            peers_gone(worker, peer->incarnation);
}

void peers_gone(struct fb_worker *worker, uint32_t incarnation)
{
    struct messages *messages = worker->messages;
    struct peer *peer = messages != NULL ? find_peer(messages, incarnation) : NULL;

    if (peer == NULL)
        return;
    put_peer(worker, peer);
    messages_decide_unknown(worker, incarnation);
}

void peers_master_gone(struct fb_worker *worker)
{
    struct peer *peer, *next;

    assert(worker->channel == NULL);
    if (worker->messages == NULL)
        return;
    LIST_FOREACH_SAFE (peer, &worker->messages->peers, link, next)
        if (peer->fd == -1)
            peers_gone(worker, peer->incarnation);
}

void peers_open(struct fb_worker *worker, struct channel_message *message)
{
    struct messages *messages = worker->messages;
    struct peer *peer = messages != NULL ? find_peer(messages, message->argument) : NULL;

    if (peer == NULL || peer->fd != -1)
        return;
    peer->fd = message->fd; /* -1: there was no room for it among our descriptors */
    message->fd = -1;
    if (peer->fd == -1 || !deliver(worker, peer))
        peers_gone(worker, message->argument);
}

bool peers_send(struct fb_worker *worker, struct queued_message *message)
{
    uint32_t incarnation = references_incarnation(message->head.to);
    struct peer *peer = get_peer(worker, incarnation);

    if (peer == NULL || (peer->queued_n >= QUEUED_MAX && message->head.outcome == 0)) {
        memory_release(messages_net(worker)->memory, message);
        return false;
    }
    STAILQ_INSERT_TAIL(&peer->queue, message, link);
    peer->queued_n++;
    if (!deliver(worker, peer) || (peer->fd == -1 && worker->channel == NULL))
        peers_gone(worker, incarnation);
    return true;
}

void peers_done(struct fb_worker *worker)
{
    struct messages *messages = worker->messages;

    while (!LIST_EMPTY(&messages->peers))
        put_peer(worker, LIST_FIRST(&messages->peers));
}

void peers_check(const struct messages *messages)
{
    const struct peer *peer;

    LIST_FOREACH (peer, &messages->peers, link) {
        assert((peer->queued_n == 0) == STAILQ_EMPTY(&peer->queue));
        assert(peer->fd == -1 || peer->queued_n == 0 || timer_is_set(&messages->retry));
    }
}

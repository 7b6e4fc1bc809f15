/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the message queues, messages.c, inbox.c and peers.c. The struct messages
 * is there from a worker's first reference on; every queued message has one queue, or is being
 * handled. */
#pragma once

#include "base/token_bucket.h"
#include "worker/messages.h"
#include "worker/worker.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

/* Goes in front of the message's bytes; workers that exchange messages are of one build. */
struct message_head {
    uint64_t number; /* given by the sender's worker; a reply has that of its message */
    fb_ref from, to;
    uint64_t outcome; /* a reply's fb_outcome; 0: a message */
};

/* A message or a reply in a queue. */
struct queued_message {
    STAILQ_ENTRY(queued_message) link;
    size_t n;
    struct message_head head;
    uint8_t bytes[];
};

STAILQ_HEAD(message_queue, queued_message);

/* A message of ours that has not been answered. */
struct unanswered {
    RB_ENTRY(unanswered) node;
    uint64_t number;
    fb_ref from;
    uint32_t incarnation; /* the receiver's worker */
    fb_outcome outcome;   /* decided here, to be reported soon; 0: the receiver decides */
};

RB_HEAD(unanswered_tree, unanswered);

/* Another worker. */
struct peer {
    TAILQ_ENTRY(peer) link;
    uint32_t incarnation;
    int fd;          /* to its inbox; -1: the master has not handed it over */
    bool asked;      /* the master was, and has not answered */
    unsigned lost_n; /* inboxes in a row that took nothing */
    struct message_queue queue;
    unsigned queued_n;
};

#define MESSAGES_KIND KIND('m', 's', 'g', 's')

struct messages {
    unsigned kind;
    struct source *inbox; /* NULL until the master has handed it over */
    struct source *local; /* without a descriptor: runs for `local_queue` and `decided_n` */
    struct message_queue local_queue; /* to connections of this worker */
    TAILQ_HEAD(, peer) peers;
    unsigned peer_n;
    unsigned asked_n;         /* peers whose inbox has been asked for and has not come */
    unsigned queued_n;        /* messages and replies in the peers' queues */
    struct token_bucket asks; /* requests for inboxes */
    struct unanswered_tree unanswered;
    unsigned decided_n; /* members of `unanswered` whose outcome is decided here */
    uint64_t last_number;
    struct timer retry; /* for peers whose inbox was full, or has to be asked for */
};

static inline struct net *messages_net(struct fb_worker *worker)
{
    return &worker->stream.net;
}

/* A source of the loop's table, of no kind of connection; NULL without a free slot. */
struct source *messages_source(struct fb_worker *worker, int fd, const struct source_ops *ops);
/* Frees the messages of a queue. */
void messages_free(struct fb_worker *worker, struct message_queue *queue);
/* Queues a message for this worker itself: it is received by the loop, never within the caller. */
void messages_queue_local(struct fb_worker *worker, struct queued_message *message);
/* Receives a message or a reply. `own` is the queued message that it came in, or NULL: it may be
 * sent back as the reply, for which there is always memory so. Returns whether it was. */
bool messages_receive(struct fb_worker *worker, const struct message_head *head, fb_bytes bytes,
    struct queued_message *own);
/* Decides that what that worker has not answered is "unknown". */
void messages_decide_unknown(struct fb_worker *worker, uint32_t incarnation);

/* Receives at most so many of the messages that wait in the inbox, which may be gone then. */
void inbox_read(struct fb_worker *worker, int most);

/* Sends a message to another worker, which takes it; false when that worker's queue is full or
 * there is no memory, and the message has been freed (peers.c). */
bool peers_send(struct fb_worker *worker, struct queued_message *message);
/* Forgets every peer, with what waits for it. */
void peers_done(struct fb_worker *worker);
void peers_retry_expired(struct loop *loop, struct timer *timer);
/* Asserts what holds of the peers' queues. */
void peers_check(const struct messages *messages);

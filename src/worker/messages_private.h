/* SPDX-License-Identifier: BSD-2-Clause */
/* The message queues, for messages*.c and siblings.c. A message is in one queue, or being
 * handled. */
#pragma once

#include "base/token_bucket.h"
#include "worker/messages.h"
#include "worker/worker.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

/* Values of `outcome` between workers, besides fb_outcome. */
enum message_outcome {
    MESSAGE_IS_SENT = 0,       /* a message, not a reply */
    MESSAGE_IS_GUESS = 128,    /* a reply: unknown, and the reference was never given out */
    MESSAGE_IS_GREETING = 129, /* a greeting, with the marks of the sender's protocols */
};

/* Begins every message between workers, in the format MESSAGES_FORM. */
struct message_head {
    uint64_t number; /* from the sender; a reply repeats it */
    fb_ref from, to;
    uint64_t protocol; /* the mark of the sender's protocol */
    uint64_t outcome;  /* a reply's fb_outcome, or an enum message_outcome */
};

static_assert(MESSAGES_FORM == 1 && sizeof(struct message_head) == 40 &&
                  offsetof(struct message_head, outcome) == 32 && FB_MESSAGE_MAX == 16384,
    "a different form has a different number");

struct message_bytes {
    unsigned users;
    uint8_t bytes[];
};

struct queued_message {
    STAILQ_ENTRY(queued_message) link;
    struct message_head head;
    size_t n;
    const uint8_t *p;              /* n bytes: its own, or the shared */
    struct message_bytes *shared;  /* NULL: none */
    struct unanswered *unanswered; /* while the message is made */
    uint8_t own[];
};

STAILQ_HEAD(message_queue, queued_message);

struct unanswered {
    RB_ENTRY(unanswered) node;
    uint64_t number; /* several when one was sent to all */
    fb_ref from, to;
    unsigned protocol;  /* the sender's index */
    fb_outcome outcome; /* decided here, to be reported soon; 0: the receiver decides */
    bool is_unheard;    /* to a worker perhaps without the protocol */
};

RB_HEAD(unanswered_tree, unanswered);

#define SIBLING_IS_FLOODED 1u /* until our protocols have heard of it */
#define SIBLING_IS_HELD 2u    /* by a test */

struct sibling {
    TAILQ_ENTRY(sibling) link;
    uint32_t incarnation;
    int fd;             /* to the inbox; -1: not handed over yet */
    bool asked;         /* the master was, and has not answered */
    uint8_t refuses;    /* takes no message: SIBLING_IS_FLOODED, SIBLING_IS_HELD, or both */
    bool greeted;       /* our greeting was sent */
    bool to_greet;      /* the greeting is to be sent; a retry is due */
    unsigned lost_n;    /* inboxes in a row that took nothing */
    uint64_t ask_at;    /* no descriptor was free for it: the master is asked again then; or 0 */
    fb_ref id;          /* reference, by greeting or slot; 0: not known */
    uint64_t protocols; /* common protocols, known by greeting, as bits */
    uint64_t unheard;   /* perhaps common, while unanswered, as bits */
    struct message_queue queue;
    unsigned queued_n;
};

#define MESSAGES_KIND KIND('m', 's', 'g', 's')

struct messages {
    unsigned kind;
    struct source *inbox; /* NULL until handed over by the master */
    struct source *local; /* without a descriptor: runs for `local_queue`, `decided_n` and `gone` */
    struct message_queue local_queue; /* messages of this worker to itself */
    struct queued_message *spare;     /* for the reply to the next message from a worker */
    bool short_of_memory;             /* the inbox is not read until there is a spare */
    TAILQ_HEAD(sibling_list, sibling) siblings;
    struct sibling_list gone; /* ended siblings, to be reported to protocols */
    unsigned sibling_n;
    unsigned asked_n;         /* siblings whose inbox has been asked for and has not come */
    unsigned queued_n;        /* messages and replies in the siblings' queues */
    struct token_bucket asks; /* requests for inboxes */
    struct unanswered_tree unanswered;
    unsigned decided_n; /* in `unanswered`, decided here */
    uint64_t last_number;
    struct timer retry; /* for siblings whose inbox was full, or has to be asked for */
    /* references that were never given out */
    struct token_bucket guesses;
    unsigned guess_n;
    uint64_t guess_told_ms;
    uint64_t deaf_until; /* messages to connections are not taken until then, monotonic ms */
};

/* messages_queue.c: Creates a message, with copied or shared bytes; NULL without memory. */
struct queued_message *message_create(struct worker *worker, const struct message_head *head,
    const void *p, size_t n, struct message_bytes *shared);
void message_free(struct worker *worker, struct queued_message *message);
/* Takes the first message of a queue; NULL: the queue is empty. */
struct queued_message *message_take(struct message_queue *queue);
void messages_free(struct worker *worker, struct message_queue *queue);
void messages_post_local(struct worker *worker);
/* Adds a message of the protocol with this index, without an outcome; NULL without memory. */
struct unanswered *messages_await(
    struct worker *worker, const struct message_head *head, unsigned protocol, bool is_unheard);
void messages_await_not(struct worker *worker, struct unanswered *unanswered);
/* Decides an outcome here, because no sibling will. */
void messages_decide(struct worker *worker, struct unanswered *unanswered, fb_outcome outcome);
/* Decides "unknown" for all unanswered messages to a worker. */
void messages_decide_unknown(struct worker *worker, uint32_t incarnation);
/* Notes the protocols, as bits, of a worker known by its slot so far. */
void messages_heard_of(struct worker *worker, fb_ref id, uint64_t protocols);
/* Reports the outcome of a reply; `sibling`: the sender of "unknown", or NULL. */
void messages_answered(
    struct worker *worker, const struct message_head *reply, struct sibling *sibling);
void messages_report_decided(struct worker *worker);
void messages_check_unanswered(const struct messages *messages);

/* siblings.c: Sends a message or reply, and takes ownership; false when freed for want of room. */
bool siblings_send(struct worker *worker, struct queued_message *message);
/* Finds or makes the sibling of an incarnation; NULL without memory, or with too many siblings. */
struct sibling *siblings_get(struct worker *worker, uint32_t incarnation);
struct sibling *siblings_find(struct messages *messages, uint32_t incarnation);
/* Sends the greeting to a sibling, which may be gone then; without memory later. */
void siblings_greet(struct worker *worker, struct sibling *sibling);
void siblings_retry(struct worker *worker);
void siblings_retry_soon(struct worker *worker);
void siblings_take_again(struct worker *worker);
/* Forgets every sibling with all queued messages. */
void siblings_done(struct worker *worker);
void siblings_check(const struct messages *messages);

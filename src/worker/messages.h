/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between connections and workers, of one worker or of two. A message is answered once:
 * handled, declined, not taken for want of room, or, when the receiver has gone, unknown. It waits
 * in the queue of the receiver's worker, or in the local queue. Queues exist from the first
 * reference on, or where a protocol has callbacks for messages of workers. */
#pragma once

#include <forkbeard/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The format of messages: during an upgrade workers exchange messages only in the same format. */
#define MESSAGES_FORM 1

struct channel_message;
struct fb_conn;
struct fb_worker;
struct worker;

/* Makes a reference as fb_ref_of() says, and opens the queues; 0 without memory. */
fb_ref messages_reference(struct worker *worker, struct fb_conn *conn);
/* fb_send_message(), fb_send_worker() and fb_send_all(). */
uint64_t messages_send(
    struct worker *worker, struct fb_conn *from, fb_ref to, const void *p, size_t n);
uint64_t messages_send_from_worker(struct fb_worker *from, fb_ref to, const void *p, size_t n);
uint64_t messages_send_all(struct fb_worker *from, const void *p, size_t n);
/* Whether messages are unsent, or protocols await outcomes and may then send more. */
bool messages_are_under_way(const struct worker *worker);
/* Greets all siblings, where a protocol has callbacks for workers; -1 after an emerg line. */
int messages_greet_all(struct worker *worker);
/* Greets a worker of another master process. */
void messages_greet_other(struct worker *worker, uint32_t incarnation);

/* messages_receive.c: Opens the queues, unless open already; false on failure. */
bool messages_open(struct worker *worker);
/* Opens the inbox, a socket from the master, and takes the descriptor. */
void messages_open_inbox(struct worker *worker, struct channel_message *message);
/* Closes queues and inbox; waiting messages are freed unsent. */
void messages_done(struct worker *worker);
void messages_check(const struct worker *worker);
/* Finds a connection of this protocol, see fb_find(); NULL for a foreign protocol's, too. */
struct fb_conn *messages_find_conn(struct fb_worker *handle, fb_ref ref);

/* siblings.c: Takes the descriptor of a worker's inbox from the master, and sends the queue. */
void siblings_open(struct worker *worker, struct channel_message *message);
/* Answers "unknown" for a worker that has gone; with CHANNEL_OTHERS_GONE for workers of another
 * master process, up to a serial, by the low bits. */
void siblings_gone(struct worker *worker, uint32_t argument);
/* Answers "unknown" where the inbox has not come, or another master tells of ends. */
void siblings_master_gone(struct worker *worker);

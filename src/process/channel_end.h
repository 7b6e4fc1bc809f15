/* SPDX-License-Identifier: BSD-2-Clause */
/* An end of a channel: the master has one for each worker, and a worker has one. A channel that is
 * full, because the other end does not read, is never waited for: a kind of message without an
 * argument is remembered as a bit, anything else by the owner, and sent when there is room. So
 * nothing grows, and nothing is allocated. An end that is not trusted must keep to the rules of
 * the channel. */
#pragma once

#include "base/token_bucket.h"
#include "event/timer.h"
#include "process/channel.h"

struct channel_end;

struct channel_end_ops {
    /* Handles a message, whose descriptor it takes. Returns the rule that the message breaks, or
     * NULL. */
    const char *(*handle)(struct channel_end *end, struct channel_message *message);
    /* Sends what the owner has beyond kinds without an argument; false: the channel is full. */
    bool (*send_more)(struct channel_end *end);
    /* A message could not be sent, and is lost. */
    void (*failed)(struct channel_end *end, int error);
    uint32_t first;   /* kinds that are sent before all others, a bit each */
    uint32_t limited; /* kinds that are sent at most every CHANNEL_END_LIMITED_MS, a bit each */
    bool is_trusted;  /* the other end */
};

#define CHANNEL_END_LIMITED_MS 20

struct channel_end {
    int fd; /* -1: the end is closed, and sends nothing */
    const struct channel_end_ops *ops;
    struct timers *timers;
    uint32_t unsent;     /* kinds that wait, a bit each: the channel is full, or it is too soon */
    uint64_t limited_ms; /* when limited kinds were sent last */
    bool more;           /* the owner has more to send */
    struct timer retry;
    struct token_bucket received; /* messages that the other end may send */
};

/* Opens an end of this descriptor, which stays the caller's. */
void channel_end_open(
    struct channel_end *end, int fd, const struct channel_end_ops *ops, struct timers *timers);
/* Closes the end, if it is open, but for its descriptor; what waits is lost. */
void channel_end_close(struct channel_end *end);

/* Sends a message without an argument, now or when it can be; one that waits already is the same.
 * Kinds that wait are sent in the order of their numbers, but for the first ones. */
void channel_end_send(struct channel_end *end, enum channel_message_kind kind);
/* Lets the owner send what it has, now and, while the channel is full, later. */
void channel_end_send_more(struct channel_end *end);
/* Lets the owner send it a little later. */
void channel_end_retry(struct channel_end *end);
/* Sends a message, once; false: the channel is full. */
bool channel_end_try(struct channel_end *end, const struct channel_message *message);
/* Sends what waits, limited or not, as far as there is room. */
void channel_end_flush(struct channel_end *end);

/* Whether a message of this kind waits. */
bool channel_end_is_unsent(const struct channel_end *end, enum channel_message_kind kind);

/* Receives and has handled as many messages: CHANNEL_DONE: more may wait; CHANNEL_BROKEN: one has
 * broken a rule, which *rule says, and it was the last that was received. */
enum channel_status channel_end_receive(struct channel_end *end, unsigned most, const char **rule);

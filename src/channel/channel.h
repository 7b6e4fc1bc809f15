/* SPDX-License-Identifier: BSD-2-Clause */
/* The channel between the master and one worker: messages, with a descriptor in some of the
 * master's. Its end-of-file shows a worker that the master has exited, because no other process has
 * the master's end. Neither end ever waits for the peer, or trusts a message: kind and argument may
 * be any number. The master has an end for each worker, and a worker has one. Messages for a full
 * channel, not read by its worker, are kept: a kind without an argument as a bit, anything else by
 * the owner. So nothing grows, and nothing is allocated. */
#pragma once

#include "base/token_bucket.h"
#include "event/timer.h"

#include <stdbool.h>
#include <stdint.h>

enum channel_message_kind {
    MESSAGE_READY = 1,       /* worker: everything is set up but the listeners */
    MESSAGE_ACCEPT,          /* master: begin to accept */
    MESSAGE_ACCEPTING,       /* worker: accepts */
    MESSAGE_RELEASED,        /* worker: the listeners are released for good */
    MESSAGE_RESCAN,          /* worker: released listeners may have clients; master: rescan once */
    MESSAGE_LOG_FILE,        /* master: `fd` replaces log number `argument` */
    MESSAGE_LOG_BROKEN,      /* worker: log number `argument` has lost its receiver */
    MESSAGE_INBOX,           /* master: `fd` receives the messages of other workers */
    MESSAGE_INBOX_LOST,      /* worker: the inbox was shut down by another process */
    MESSAGE_INBOX_WANTED,    /* worker: send me the inbox of slot_incarnation() `argument` */
    MESSAGE_SIBLING_INBOX,   /* master: `fd` is the requested inbox */
    MESSAGE_SIBLING_GONE,    /* master: the incarnation has ended, or has no inbox */
    MESSAGE_MUTEX_DAMAGED,   /* worker: the accept mutex had an impossible owner */
    MESSAGE_MUTEX_OFF,       /* master: go on without the accept mutex */
    MESSAGE_LISTENER_BROKEN, /* worker: the listening socket `argument` was shut down */
    MESSAGE_LISTENER,        /* master: `fd` replaces the listening socket `argument` */
    MESSAGE_OTHERS_WANTED,   /* worker: name the other master's workers in an upgrade, once */
    MESSAGE_OTHER,           /* master: incarnation `argument` is the other master's worker */
    MESSAGE_REOPEN,          /* master: open again the logs that you have opened yourself */
    MESSAGE_NAMES,           /* helper: there are new addresses of names; master: the same */
    MESSAGE_TRIM,            /* master: end idle sessions, as you drain */
    MESSAGE_LINK,            /* master: `fd` leads to the worker's keeper, or to its worker */
    MESSAGE_LINK_LOST,       /* worker: the link of MESSAGE_LINK number `argument` has failed */
    MESSAGE_FILE_WANTED,     /* keeper: open file number `argument` of the configuration */
    MESSAGE_FILE,            /* master: `fd` is the wanted file, or -1, of the errno `argument` */
    MESSAGE_FILES_CHANGED,   /* master: files of the configuration may have changed */
    MESSAGE_REPORT_WANTED,   /* master: write a report about certificates to `fd` */
    MESSAGE_REPORT,          /* keeper: the report has `argument` bytes */
    MESSAGE_LOG_LEVEL,       /* master: the level published for all logs has changed */
    MESSAGE_SESSIONS,        /* master: write your sessions into the pipe `fd` */
};

/* In the argument of MESSAGE_SIBLING_GONE: the rest is a serial (shm/slot.h) and no incarnation.
 * All workers of the other master process with this or an earlier serial have gone. */
#define CHANNEL_OTHERS_GONE (1u << 31)

struct channel_message {
    uint32_t kind; /* enum channel_message_kind */
    uint32_t argument;
    int fd; /* passed along, or -1; the receiver owns it */
};

enum channel_status {
    CHANNEL_DONE,
    CHANNEL_AGAIN,  /* none waits */
    CHANNEL_CLOSED, /* the sender has gone, or reading has failed */
    CHANNEL_BROKEN, /* a packet of a wrong length, which is dropped */
};

/* Makes a channel: ends[0] is the master's, which is passed no descriptors, ends[1] the worker's,
 * both close-on-exec and non-blocking. Returns -1 with errno. */
int channel_open(int ends[2]);
/* Makes an inbox: ends[0] receives, ends[1] sends; neither is passed descriptors. */
int channel_open_inbox(int ends[2]);
/* Sends; -1 with errno: EAGAIN when the channel is full, EPIPE when the receiver has closed it. */
int channel_send(int fd, const struct channel_message *message);
/* Receives the next message. */
enum channel_status channel_receive(int fd, struct channel_message *message);

struct channel_end;

struct channel_end_ops {
    /* Handles a message and takes its descriptor. Returns the broken rule, or NULL. */
    const char *(*handle)(struct channel_end *end, struct channel_message *message);
    /* Sends the owner's messages with arguments; false: the channel is full. */
    bool (*send_more)(struct channel_end *end);
    /* A message could not be sent, and is lost. */
    void (*failed)(struct channel_end *end, int error);
    uint32_t first;   /* kinds sent before the rest, a bit each */
    uint32_t limited; /* kinds sent at most every CHANNEL_END_LIMITED_MS, a bit each */
    bool is_trusted;  /* the other end */
};

#define CHANNEL_END_LIMITED_MS 20

struct channel_end {
    int fd; /* -1: the end is closed, and sends nothing */
    const struct channel_end_ops *ops;
    struct timers *timers;
    uint32_t unsent;     /* waiting kinds, a bit each: the channel is full, or it is too soon */
    uint64_t limited_ms; /* when limited kinds were sent last */
    bool more;           /* the owner has more to send */
    struct timer retry;
    struct token_bucket received; /* messages that the other end may send */
};

/* Opens an end by a descriptor that stays the caller's. */
void channel_end_open(
    struct channel_end *end, int fd, const struct channel_end_ops *ops, struct timers *timers);
/* Closes the end, if open, but not the descriptor; waiting messages are lost. */
void channel_end_close(struct channel_end *end);
/* Sends a message without an argument, now or when there is room; a second of the kind that waits
 * is the same. Waiting kinds are sent in the order of their numbers, after the `first` kinds. */
void channel_end_send(struct channel_end *end, enum channel_message_kind kind);
/* Calls send_more(), now and, while the channel is full, later. */
void channel_end_send_more(struct channel_end *end);
/* Calls send_more() a little later. */
void channel_end_retry(struct channel_end *end);
/* Sends a message, once; false: the channel is full. */
bool channel_end_try(struct channel_end *end, const struct channel_message *message);
/* Sends all waiting kinds, limited or not, as far as there is room. */
void channel_end_flush(struct channel_end *end);
/* Whether a message of this kind waits. */
bool channel_end_is_unsent(const struct channel_end *end, enum channel_message_kind kind);

/* Takes back a received message's share of the rate: a request that waits for our reply is
 * no flood. */
void channel_end_forgive(struct channel_end *end);

/* Receives and handles at most so many messages. CHANNEL_DONE: more may wait; CHANNEL_BROKEN: the
 * last has broken *rule. */
enum channel_status channel_end_receive(struct channel_end *end, unsigned most, const char **rule);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The channel between the master and one worker: messages, of which the master's may have a
 * descriptor. Its end-of-file shows a worker that the master has exited, because no other process
 * has the master's end. Neither end ever waits for the other, and neither trusts what it receives:
 * kind and argument may be any number. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum channel_message_kind {
    MESSAGE_READY = 1,  /* worker: everything is set up but the listeners */
    MESSAGE_ACCEPT,     /* master: begin to accept */
    MESSAGE_ACCEPTING,  /* worker: it accepts */
    MESSAGE_RELEASED,   /* worker: it has released its listeners for good */
    MESSAGE_RESCAN,     /* worker: it has released listeners that may have clients waiting;
                             master: rescan the listeners once */
    MESSAGE_LOG_FILE,   /* master: `fd` replaces log number `argument` */
    MESSAGE_LOG_BROKEN, /* worker: log number `argument` has lost its receiver */
    MESSAGE_INBOX,      /* master: others send to the worker, which receives from `fd` */
    MESSAGE_INBOX_LOST, /* worker: somebody has shut its inbox down */
    /* worker: asks for the inbox of incarnation `argument` (slot_incarnation()) */
    MESSAGE_INBOX_WANTED,
    MESSAGE_INBOX_OF_PEER, /* master: `fd` is the inbox that was asked for */
    MESSAGE_PEER_GONE,     /* master: that incarnation has ended, or has no inbox; with
                                CHANNEL_OTHERS_GONE: all have of the other master process */
    MESSAGE_MUTEX_DAMAGED, /* worker: the accept mutex had an owner that cannot be */
    MESSAGE_MUTEX_OFF,     /* master: go on without the accept mutex */
    /* worker: the listening socket that is descriptor `argument` was shut down */
    MESSAGE_LISTENER_BROKEN,
    /* master: `fd` takes the place of descriptor `argument`, a listening socket */
    MESSAGE_LISTENER,
    /* worker: asks for the workers of the other master process of an upgrade, once */
    MESSAGE_OTHERS_WANTED,
    MESSAGE_OTHER,  /* master: incarnation `argument` is a worker of the other master process */
    MESSAGE_REOPEN, /* master: open again what the worker has opened of logs itself */
    /* helper: it has written down new addresses of names; master: one has */
    MESSAGE_NAMES,
    MESSAGE_TRIM, /* master: end the sessions that are idle, as the worker drains */
};

/* In the argument of MESSAGE_PEER_GONE: the rest of it is no incarnation but a serial, of the width
 * that serials have in one (shm/slot.h). Workers of the other master process with this serial or an
 * earlier one have gone. */
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
/* Makes an inbox: ends[0] is its worker's, who receives, ends[1] the senders'; neither is passed
 * descriptors. -1 with errno. */
int channel_open_inbox(int ends[2]);

/* Sends; -1 with errno: EAGAIN when the channel is full, EPIPE when the receiver has closed it. */
int channel_send(int fd, const struct channel_message *message);
/* Receives the next message. */
enum channel_status channel_receive(int fd, struct channel_message *message);

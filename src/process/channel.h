/* SPDX-License-Identifier: BSD-2-Clause */
/* The channel between the master and one worker: messages, some with a descriptor. Its end-of-file
 * tells a worker that the master has gone, because no other process holds the master's end. Neither end
 * ever waits for the other, and neither believes what comes: kind and argument are any number. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum fb_message_kind {
    FB_MESSAGE_READY = 1, /* worker: everything is set up but the listeners */
    FB_MESSAGE_ARM,       /* master: begin to accept */
    FB_MESSAGE_ARMED,     /* worker: it accepts */
    FB_MESSAGE_CLOSED,    /* worker: it has released its listeners for good */
    FB_MESSAGE_LOOK,      /* worker: it has released listeners that may have clients waiting;
                             master: rescan the listeners once */
    FB_MESSAGE_REOPEN,    /* master: `fd` replaces log number `argument` */
    FB_MESSAGE_BROKEN,    /* worker: log number `argument` has lost its receiver */
    FB_MESSAGE_INBOX,     /* worker: others send to it through `fd` */
    FB_MESSAGE_WANT, /* worker: asks for the inbox of incarnation `argument` (fb_slot_life()) */
    FB_MESSAGE_PEER, /* master: `fd` is the inbox that was asked for */
    FB_MESSAGE_GONE, /* master: that incarnation has ended, or has no inbox */
};

struct fb_message {
    uint32_t kind; /* enum fb_message_kind */
    uint32_t argument;
    int fd; /* passed along, or -1; the receiver owns it */
};

enum fb_channel_status { FB_CHANNEL_DONE, FB_CHANNEL_AGAIN, FB_CHANNEL_CLOSED };

/* Makes a channel: ends[0] is the master's, ends[1] the worker's, both close-on-exec and non-blocking.
 * Returns -1 with errno. */
int fb_channel_open(int ends[2]);
/* Makes `fd` wake this process by SIGIO when there is something to receive; -1 with errno. */
int fb_channel_wake(int fd);

/* Sends; -1 with errno: EAGAIN when the receiver does not keep up, EPIPE when it has gone. */
int fb_channel_send(int fd, const struct fb_message *message);
/* Receives the next message. Errors other than EAGAIN count as FB_CHANNEL_CLOSED. */
enum fb_channel_status fb_channel_receive(int fd, struct fb_message *message);

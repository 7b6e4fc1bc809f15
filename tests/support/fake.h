/* SPDX-License-Identifier: BSD-2-Clause */
/* A kernel in memory: sockets that do what the test says, a virtual clock, and the mechanism that
 * serves a loop from both. As of the real kernel, there is one a process. What goes past the
 * mechanism to the real one is noticed: no descriptor of these exists there. */
#pragma once

#include "event/mechanism.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define FAKE_PIECES 64

/* A socket as a test sees it; it stays to be looked at when it has been closed. */
struct fake_socket {
    int fd;
    /* what the test may set before the loop uses it */
    size_t send_most; /* bytes that one send takes; SIZE_MAX at first */
    bool lends;       /* recv answers with memory of its own */
    bool tells_eof;   /* an event says so when the end is among what has arrived, as epoll's do */
    int accept_error; /* of a listener: what accept answers */
    /* what the program did */
    unsigned recvs, sends;
    size_t room; /* bytes that the peer still takes; SIZE_MAX at first */
    uint8_t *sent;
    size_t sent_n;
    struct iovec pieces[FAKE_PIECES]; /* of the latest send */
    int piece_n;
    bool shut, closed, reset;
    bool listening, exclusive; /* watched as a listener */
};

/* Events once a change, and as long as a direction is ready. */
extern const struct fb_mechanism fake_edge, fake_level;

void fake_start(void);
/* Fails if a connection has not been closed by the mechanism's operation. */
void fake_stop(void);

void fake_pass(uint64_t ms);
/* Events that the latest wait has reported. */
unsigned fake_reported(void);
/* Is called when a loop begins to wait. */
void fake_on_wait(void (*waiting)(struct fb_loop *loop, int timeout));
/* How long the latest wait would have been at most. */
int fake_timeout(void);
/* The errno with which no direction can be watched any more; 0 to undo it. */
void fake_refuse_watching(int error);

/* A connection with a peer that takes everything and says nothing. */
struct fake_socket *fake_connection(void);
/* Makes a listener of a descriptor, which may be a real one, and is not to be closed. */
struct fake_socket *fake_listener(int fd);
/* A client of the listener: what accept will answer with. */
struct fake_socket *fake_client(struct fake_socket *listener);
/* How many clients have not been accepted. */
unsigned fake_waiting(const struct fake_socket *listener);

/* What arrives from the peer, in order: bytes that one recv takes together, */
void fake_say(struct fake_socket *socket, const void *p, size_t n);
void fake_says(struct fake_socket *socket, const char *text);
/* ... "again", although more follows, */
void fake_stall(struct fake_socket *socket);
/* ... the end of its half, or an error. */
void fake_end(struct fake_socket *socket);
void fake_break(struct fake_socket *socket, int error);
/* From now on the peer takes so many bytes. */
void fake_take(struct fake_socket *socket, size_t n);
/* From now on every send fails. */
void fake_break_output(struct fake_socket *socket, int error);
/* Bytes that have arrived and were not received. */
size_t fake_unread(const struct fake_socket *socket);

/* SPDX-License-Identifier: BSD-2-Clause */
/* A kernel in memory, under which a loop, or a whole worker, runs in a test: sockets whose far ends
 * the harness drives, clocks that it turns, and, if it likes, trouble that comes from a seed. The
 * same calls with the same seed give the same run, byte by byte.
 *
 * A mistake of the program under test is a fault, which the harness is told of: an operation on a
 * descriptor that is not open, closing it while it is watched, never closing it. A mistake of the
 * harness, and a shortage of its memory, is an assertion.
 *
 * Descriptors of the simulation exist nowhere else, so that what goes past it to the real kernel
 * fails. Sources of the real kernel (io_state is NULL) may be watched too, but nothing happens
 * there, except that notify() works as everywhere, from threads too.
 *
 * A simulation belongs to no loop: several can run on it, in one thread, and it outlives them. */
#pragma once

#include "event/mechanism.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct fb_sim;
struct fb_sim_server;

#define FB_SIM_PIECES 64

/* A socket of the program as the harness, which is its peer, sees it. The struct stays readable
 * after the program has closed the socket, until fb_sim_forget(). */
struct fb_sim_socket {
    int fd;
    /* set by the harness, before the program uses the socket */
    size_t send_most; /* bytes that one send takes; SIZE_MAX at first */
    bool lends;       /* recv answers with memory of the simulation */
    bool tells_eof;   /* an event announces an end that has arrived, as epoll's events do */
    int accept_error; /* the errno that accept answers on a listener; 0: none */
    struct sockaddr_storage peer, local; /* for accept() and name() */
    socklen_t peer_length, local_length; /* 0: not known; the peer is 192.0.2.1:1234 at first */
    /* set by the simulation: what the program did */
    unsigned recvs, sends;
    size_t room; /* bytes that the peer still takes; SIZE_MAX at first */
    uint8_t *sent;
    size_t sent_n;
    struct iovec pieces[FB_SIM_PIECES]; /* the first pieces of the latest send */
    int piece_n;
    bool shut, closed, reset;
    bool listening, exclusive; /* watched as a listener */
    bool broke;                /* reset by simulated trouble: nothing comes through any more */
};

/* Makes a simulation without sockets; never NULL. */
struct fb_sim *fb_sim_create(void);
/* Frees it, after its loops are done. A descriptor that the program has not closed is a fault. */
void fb_sim_destroy(struct fb_sim **sim);

/* Mechanisms for loops that run on it: events once a change, or as long as a direction is ready. */
const struct fb_mechanism *fb_sim_edge(struct fb_sim *sim);
const struct fb_mechanism *fb_sim_level(struct fb_sim *sim);
/* The simulation that a loop of such a mechanism runs on. */
struct fb_sim *fb_sim_of(const struct fb_loop *loop);

/* Sets `fault` to be called for each mistake of the program, at once; the texts are kept in
 * order. */
void fb_sim_on_fault(struct fb_sim *sim, void (*fault)(void *arg, const char *text), void *arg);
unsigned fb_sim_faults(const struct fb_sim *sim);
/* Returns the text of fault i, counted from 0; NULL beyond the last. */
const char *fb_sim_fault_text(const struct fb_sim *sim, unsigned i);
/* Reports each descriptor that the program has not closed by now as a fault, once. */
void fb_sim_check_closed(struct fb_sim *sim);

/* Lets time pass, which otherwise stands still. */
void fb_sim_pass(struct fb_sim *sim, uint64_t ms);
/* Lets time also pass by itself: a wait in which nothing happens takes as long as was asked for,
 * or, without an end, until the loop's next timer. No wait ever blocks. */
void fb_sim_set_auto(struct fb_sim *sim, bool on);
/* Sets the wall clock, in ms since the epoch, without letting time pass. */
void fb_sim_set_wall(struct fb_sim *sim, int64_t wall_ms);
uint64_t fb_sim_now(const struct fb_sim *sim);

/* Whether nothing is to be done on the loop until time passes or the harness does something. */
bool fb_sim_idle(const struct fb_loop *loop);
/* Waits, in real time, until a thread has called notify(); false when `ms` have passed. */
bool fb_sim_await_notice(const struct fb_loop *loop, int ms);
/* The number of events that the latest wait of any loop has reported, and its timeout. */
unsigned fb_sim_reported(const struct fb_sim *sim);
int fb_sim_timeout(const struct fb_sim *sim);
/* Sets `waiting` to be called whenever a loop begins to wait. */
void fb_sim_on_wait(struct fb_sim *sim, void (*waiting)(struct fb_loop *loop, int timeout));
/* Refuses from now on to watch anything, with that errno; 0 to undo it. */
void fb_sim_refuse_watching(struct fb_sim *sim, int error);

/* How often, of a thousand times that it could, each trouble comes. Below 1000 a program that does
 * right gets through in the end. */
struct fb_sim_trouble {
    unsigned partial_send; /* a send takes a part */
    unsigned partial_recv; /* recv gives a part of what there is */
    unsigned again;        /* "again", although an event was reported and more is there */
    unsigned spurious;     /* an event without a reason */
    unsigned late;         /* an event comes only with the next wait */
    unsigned reset;        /* a connection breaks when it is received from or sent to */
    unsigned aborted;      /* a client has gone when it is accepted */
};

/* Makes trouble from now on; NULL: no more. */
void fb_sim_trouble(struct fb_sim *sim, uint64_t seed, const struct fb_sim_trouble *trouble);
/* Draws a number below `below` from the same source, for the harness's own choices. */
uint32_t fb_sim_any(struct fb_sim *sim, uint32_t below);
/* A digest of everything that the program did and was answered so far. */
uint64_t fb_sim_digest(const struct fb_sim *sim);

/* Makes a connection whose descriptor the program has, and whose peer takes everything and says
 * nothing. */
struct fb_sim_socket *fb_sim_connection(struct fb_sim *sim);
/* Makes a listener, which need not be closed; `fd` is -1, or the real descriptor that it stands
 * for. */
struct fb_sim_socket *fb_sim_listener(struct fb_sim *sim, int fd);
/* Makes a client of the listener, which accept will return. */
struct fb_sim_socket *fb_sim_client(struct fb_sim_socket *listener);
/* The number of clients that have not been accepted. */
unsigned fb_sim_waiting(const struct fb_sim_socket *listener);

enum fb_sim_answer { FB_SIM_ACCEPTS, FB_SIM_REFUSES, FB_SIM_SILENT };

/* Makes a server that the program can connect to, which accepts. Without one connect() fails with
 * ECONNREFUSED. */
struct fb_sim_server *fb_sim_server(
    struct fb_sim *sim, const struct sockaddr *address, socklen_t length);
/* Sets how connects end, also those under way; `error` is for those that are refused (0:
 * ECONNREFUSED). */
void fb_sim_answer(struct fb_sim_server *server, enum fb_sim_answer answer, int error);
/* Sets whether connect() itself says how it ended; else an event does. */
void fb_sim_answer_at_once(struct fb_sim_server *server, bool at_once);
/* Takes the next connection that the server has accepted; NULL without one. */
struct fb_sim_socket *fb_sim_server_take(struct fb_sim_server *server);
/* The number of connects to the server. */
unsigned fb_sim_server_tries(const struct fb_sim_server *server);

/* Let bytes arrive from the peer, which one recv takes together. What arrives is received in
 * order. */
void fb_sim_say(struct fb_sim_socket *socket, const void *p, size_t n);
void fb_sim_says(struct fb_sim_socket *socket, const char *text);
/* Lets one recv answer "again", although more follows. */
void fb_sim_stall(struct fb_sim_socket *socket);
/* Let the end of the peer's half arrive, or an error. */
void fb_sim_end(struct fb_sim_socket *socket);
void fb_sim_break(struct fb_sim_socket *socket, int error);
/* Lets the peer take so many bytes from now on. */
void fb_sim_take(struct fb_sim_socket *socket, size_t n);
/* Makes every send fail from now on. */
void fb_sim_break_output(struct fb_sim_socket *socket, int error);
/* The number of bytes that have arrived and were not received. */
size_t fb_sim_unread(const struct fb_sim_socket *socket);
/* The bytes that were sent and not forgotten, as a string. */
const char *fb_sim_sent(const struct fb_sim_socket *socket);
void fb_sim_forget_sent(struct fb_sim_socket *socket);
/* Frees a socket that the program has closed. */
void fb_sim_forget(struct fb_sim_socket **socket);

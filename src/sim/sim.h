/* SPDX-License-Identifier: BSD-2-Clause */
/* A kernel in memory, under which a loop, or a whole worker, runs in a test: sockets whose far ends
 * the harness drives, clocks that it turns, and, if it likes, trouble that comes from a seed. What is
 * done twice with the same seed gives the same run, byte by byte.
 *
 * A mistake of the program under test is a fault, which the harness is told of: an operation on a
 * descriptor that is not open, closing it while it is watched, never closing it. A mistake of the
 * harness, and a shortage of its memory, is an assertion.
 *
 * Descriptors of the simulation exist nowhere else, so that what goes past it to the real kernel
 * fails. Sources of the real kernel (io_state is NULL) may be watched too, but nothing happens there,
 * except that notify() works as everywhere, from threads too.
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

/* A socket of the program as the harness, who is its peer, sees it. It stays to be looked at when it
 * has been closed, until fb_sim_forget(). */
struct fb_sim_socket {
    int fd;
    /* what the harness may set before the program uses it */
    size_t send_most; /* bytes that one send takes; SIZE_MAX at first */
    bool lends;       /* recv answers with memory of its own */
    bool tells_eof;   /* an event says so when the end is among what has arrived, as epoll's do */
    int accept_error; /* of a listener: what accept answers */
    struct sockaddr_storage peer, local; /* for accept() and name() */
    socklen_t peer_length, local_length; /* 0: not known; the peer is 192.0.2.1:1234 at first */
    /* what the program did */
    unsigned recvs, sends;
    size_t room; /* bytes that the peer still takes; SIZE_MAX at first */
    uint8_t *sent;
    size_t sent_n;
    struct iovec pieces[FB_SIM_PIECES]; /* of the latest send, the first ones */
    int piece_n;
    bool shut, closed, reset;
    bool listening, exclusive; /* watched as a listener */
    bool broke; /* by trouble of the simulation's own: nothing comes through any more */
};

struct fb_sim *fb_sim_create(void);
/* After its loops are done. A descriptor that the program has not closed is a fault. */
void fb_sim_destroy(struct fb_sim **sim);

/* Mechanisms for loops that run on it: events once a change, or as long as a direction is ready. */
const struct fb_mechanism *fb_sim_edge(struct fb_sim *sim);
const struct fb_mechanism *fb_sim_level(struct fb_sim *sim);
/* The simulation that a loop of such a mechanism runs on. */
struct fb_sim *fb_sim_of(const struct fb_loop *loop);

/* What the program has done wrong: called at once, and kept in order. */
void fb_sim_on_fault(struct fb_sim *sim, void (*fault)(void *arg, const char *text), void *arg);
unsigned fb_sim_faults(const struct fb_sim *sim);
/* The text of one, counted from 0; NULL beyond the last. */
const char *fb_sim_fault_text(const struct fb_sim *sim, unsigned i);
/* By now the program should have closed everything; what it has not is a fault, once. */
void fb_sim_check_closed(struct fb_sim *sim);

/* Time. It stands still but for this, */
void fb_sim_pass(struct fb_sim *sim, uint64_t ms);
/* ... or else also passes by itself: a wait in which nothing happens takes as long as was asked for,
 * or, without an end, until the loop's next timer. No wait ever blocks. */
void fb_sim_set_auto(struct fb_sim *sim, bool on);
/* The wall clock is set, which is no passing of time; ms since the epoch. */
void fb_sim_set_wall(struct fb_sim *sim, int64_t wall_ms);
uint64_t fb_sim_now(const struct fb_sim *sim);

/* Nothing is to be done on the loop until time passes or the harness does something. */
bool fb_sim_idle(const struct fb_loop *loop);
/* Waits, in real time, until a thread has called notify(); false when `ms` have passed. */
bool fb_sim_await_notice(const struct fb_loop *loop, int ms);
/* Of the latest wait of any loop: how many events it reported, and the timeout it was called with. */
unsigned fb_sim_reported(const struct fb_sim *sim);
int fb_sim_timeout(const struct fb_sim *sim);
/* Is called when a loop begins to wait. */
void fb_sim_on_wait(struct fb_sim *sim, void (*waiting)(struct fb_loop *loop, int timeout));
/* The errno with which no direction can be watched any more; 0 to undo it. */
void fb_sim_refuse_watching(struct fb_sim *sim, int error);

/* How often, of a thousand times that it could, each trouble comes. What is below 1000 lets a
 * program that does right get through in the end. */
struct fb_sim_trouble {
    unsigned partial_send; /* a send takes a part */
    unsigned partial_recv; /* recv gives a part of what there is */
    unsigned again;        /* "again", although an event was reported and more is there */
    unsigned spurious;     /* an event without a reason */
    unsigned late;         /* an event comes only with the next wait */
    unsigned reset;        /* a connection breaks when it is received from or sent to */
    unsigned aborted;      /* a client has gone when it is accepted */
};

/* From now on; NULL: no more. */
void fb_sim_trouble(struct fb_sim *sim, uint64_t seed, const struct fb_sim_trouble *trouble);
/* A number below `below` from the same source, for the harness's own choices. */
uint32_t fb_sim_any(struct fb_sim *sim, uint32_t below);
/* Stands for everything that the program did and was told so far. */
uint64_t fb_sim_digest(const struct fb_sim *sim);

/* A connection of which the program has been given the descriptor, whose peer takes everything and
 * says nothing. */
struct fb_sim_socket *fb_sim_connection(struct fb_sim *sim);
/* A listener, which need not be closed; `fd` is -1, or the real descriptor for which it stands. */
struct fb_sim_socket *fb_sim_listener(struct fb_sim *sim, int fd);
/* A client of the listener: what accept will answer with. */
struct fb_sim_socket *fb_sim_client(struct fb_sim_socket *listener);
/* How many clients have not been accepted. */
unsigned fb_sim_waiting(const struct fb_sim_socket *listener);

enum fb_sim_answer { FB_SIM_ACCEPTS, FB_SIM_REFUSES, FB_SIM_SILENT };

/* A server that the program can connect to, which accepts. Where there is none it is told
 * ECONNREFUSED. */
struct fb_sim_server *fb_sim_server(
    struct fb_sim *sim, const struct sockaddr *address, socklen_t length);
/* How connects end, also those under way; with `error` those that are refused (0: ECONNREFUSED). */
void fb_sim_answer(struct fb_sim_server *server, enum fb_sim_answer answer, int error);
/* Whether connect() itself says how it ends, else an event does. */
void fb_sim_answer_at_once(struct fb_sim_server *server, bool at_once);
/* The next connection that it has accepted and that was not taken yet; NULL without one. */
struct fb_sim_socket *fb_sim_server_take(struct fb_sim_server *server);
/* How often a connect was tried. */
unsigned fb_sim_server_tries(const struct fb_sim_server *server);

/* What arrives from the peer, in order: bytes that one recv takes together, */
void fb_sim_say(struct fb_sim_socket *socket, const void *p, size_t n);
void fb_sim_says(struct fb_sim_socket *socket, const char *text);
/* ... "again", although more follows, */
void fb_sim_stall(struct fb_sim_socket *socket);
/* ... the end of its half, or an error. */
void fb_sim_end(struct fb_sim_socket *socket);
void fb_sim_break(struct fb_sim_socket *socket, int error);
/* From now on the peer takes so many bytes. */
void fb_sim_take(struct fb_sim_socket *socket, size_t n);
/* From now on every send fails. */
void fb_sim_break_output(struct fb_sim_socket *socket, int error);
/* Bytes that have arrived and were not received. */
size_t fb_sim_unread(const struct fb_sim_socket *socket);
/* All that was sent and not forgotten, as a string. */
const char *fb_sim_sent(const struct fb_sim_socket *socket);
void fb_sim_forget_sent(struct fb_sim_socket *socket);
/* Frees a socket that the program has closed. */
void fb_sim_forget(struct fb_sim_socket **socket);

/* SPDX-License-Identifier: BSD-2-Clause */
/* A kernel in memory, under which a loop, or a whole worker, runs in a test: sockets whose far ends
 * the harness drives, clocks that it turns, and, if it likes, trouble that comes from a seed. The
 * same calls with the same seed give the same run, byte by byte.
 *
 * A mistake of the program under test is a fault, which is reported to the harness: an operation on
 * a descriptor that is not open, closing it while it is watched, never closing it. A mistake of the
 * harness, and a shortage of its memory, is an assertion.
 *
 * Descriptors of the simulation exist nowhere else, so that what goes past it to the real kernel
 * fails. Sources of the real kernel (io_state is NULL) may be watched too, but nothing happens
 * there, except that notify() works as everywhere, from threads too, and that each wait looks which
 * of those are ready whose events are levels.
 *
 * A simulation belongs to no loop: several can run on it, in one thread, and it outlives them. */
#pragma once

#include "event/mechanism.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct sim;
struct sim_server;

#define SIM_PIECES 64

/* A socket of the program as the harness, which is its peer, sees it. The struct stays readable
 * after the program has closed the socket, until sim_socket_free(). */
struct sim_socket {
    int fd;
    /* set by the harness, before the program uses the socket */
    size_t send_most; /* bytes that one send takes; SIZE_MAX at first */
    bool lends;       /* recv answers with memory of the simulation */
    bool datagrams;   /* bytes of one send, and those said at once, stay together */
    bool tells_eof;   /* an event announces an end that has arrived, as epoll's events do */
    bool queues;      /* sent bytes stay in the kernel's queue until sim_take() */
    int accept_error; /* the errno that accept answers on a listener; 0: none */
    struct sockaddr_storage peer, local; /* for accept() and name() */
    socklen_t peer_length, local_length; /* 0: not known; the peer is 192.0.2.1:1234 at first */
    /* set by the simulation: what the program did */
    int receive_buffer;             /* bytes that it has asked for before it connected; 0: none */
    bool keepalive;                 /* SO_KEEPALIVE */
    unsigned recvs, sends, splices; /* splices in are receives, too */
    size_t room;                    /* bytes that the peer still takes; SIZE_MAX at first */
    uint8_t *sent;
    size_t sent_n;
    size_t queued;                   /* the last of the sent bytes, which a reset takes back */
    struct iovec pieces[SIM_PIECES]; /* the first pieces of the latest send */
    int piece_n;
    bool shut, closed, reset;
    bool listening, exclusive; /* watched as a listener */
    bool broke;                /* reset by simulated trouble: nothing comes through any more */
};

/* Makes a simulation without sockets; never NULL. */
struct sim *sim_create(void);
/* Frees it, after its loops are done. A descriptor that the program has not closed is a fault. */
void sim_destroy(struct sim **sim);

/* Mechanisms for loops that run on it: events once a change, or as long as a direction is ready. */
const struct mechanism *sim_edge(struct sim *sim);
const struct mechanism *sim_level(struct sim *sim);
/* The simulation that a loop of such a mechanism runs on. */
struct sim *sim_of(const struct loop *loop);

/* Sets `fault` to be called for each mistake of the program, at once; the texts are kept in
 * order. */
void sim_on_fault(struct sim *sim, void (*fault)(void *arg, const char *text), void *arg);
unsigned sim_faults(const struct sim *sim);
/* Returns the text of fault i, counted from 0; NULL beyond the last. */
const char *sim_fault_text(const struct sim *sim, unsigned i);
/* Reports each descriptor that the program has not closed by now as a fault, once. */
void sim_check_closed(struct sim *sim);

/* Lets time pass, which otherwise stands still. */
void sim_pass(struct sim *sim, uint64_t ms);
/* Lets time also pass by itself: a wait in which nothing happens takes as long as was asked for,
 * or, without an end, until the loop's next timer. No wait ever blocks. */
void sim_set_auto(struct sim *sim, bool on);
/* Sets the wall clock, in ms since the epoch, without letting time pass. */
void sim_set_wall(struct sim *sim, int64_t wall_ms);
uint64_t sim_now_ms(const struct sim *sim);

/* Whether nothing is to be done on the loop until time passes or the harness does something. */
bool sim_idle(const struct loop *loop);
/* Holds what threads notify of back, or no longer. */
void sim_hold_notices(struct sim *sim, bool on);
/* Waits, in real time, until a thread has called notify(); false when `ms` have passed. */
bool sim_await_notice(const struct loop *loop, int ms);
/* The number of events that the latest wait of any loop has reported, and its timeout. */
unsigned sim_reported(const struct sim *sim);
int sim_timeout(const struct sim *sim);
/* Sets `waiting` to be called whenever a loop begins to wait. */
void sim_on_wait(struct sim *sim, void (*waiting)(struct loop *loop, int timeout));
/* Refuses from now on to watch anything, with that errno; 0 to undo it. */
void sim_refuse_watching(struct sim *sim, int error);

/* Lets the bytes of pipes go past the program, for connections that it makes afterwards. */
void sim_splice(struct sim *sim);

/* Makes each connect() fail from now on, with that errno, before there is a descriptor; 0 to undo
 * it. */
void sim_refuse_descriptors(struct sim *sim, int error);

/* The probability of each trouble in thousandths. With values below 1000 a correct program finishes
 * in the end. */
struct sim_trouble {
    unsigned partial_send; /* a send takes a part */
    unsigned partial_recv; /* recv gives a part of what there is */
    unsigned again;        /* "again", although an event was reported and more is there */
    unsigned spurious;     /* an event without a reason */
    unsigned late;         /* an event comes only with the next wait */
    unsigned reset;        /* a connection breaks when it is received from or sent to */
    unsigned aborted;      /* a client has already closed when it is accepted */
};

/* Makes trouble from now on; NULL: no more. */
void sim_trouble(struct sim *sim, uint64_t seed, const struct sim_trouble *trouble);
/* Draws a number below `below` from the same source, for the harness's own choices. */
uint32_t sim_random(struct sim *sim, uint32_t below);
/* Returns a digest of everything that the program has done, and of all results that it got, so
 * far. */
uint64_t sim_digest(const struct sim *sim);

/* Makes a connection whose descriptor the program has. Its peer reads everything and sends
 * nothing. */
struct sim_socket *sim_connection(struct sim *sim);
/* Makes a listener, which need not be closed; `fd` is -1, or the real descriptor that it stands
 * for. */
struct sim_socket *sim_listener(struct sim *sim, int fd);
/* Makes a client of the listener, which accept will return. */
struct sim_socket *sim_client(struct sim_socket *listener);
/* The number of clients that have not been accepted. */
unsigned sim_waiting_clients(const struct sim_socket *listener);

enum sim_server_answer { SIM_ACCEPTS, SIM_REFUSES, SIM_SILENT };

/* Makes a server that the program can connect to, which accepts. Without one connect() fails with
 * ECONNREFUSED. The program can connect from each local address but those of 203.0.113.0/24, which
 * are EADDRNOTAVAIL. */
struct sim_server *sim_server(struct sim *sim, const struct sockaddr *address, socklen_t length);
/* Sets how connects end, also those under way; `error` is for those that are refused (0:
 * ECONNREFUSED). */
void sim_server_answer(struct sim_server *server, enum sim_server_answer answer, int error);
/* Sets whether connect() itself returns the result; otherwise an event reports it. */
void sim_server_answer_at_once(struct sim_server *server, bool at_once);
/* Returns the next connection that the server has accepted, once; NULL without one. */
struct sim_socket *sim_server_take(struct sim_server *server);
/* The number of connects to the server. */
unsigned sim_server_tries(const struct sim_server *server);

/* Let bytes arrive from the peer, which one recv takes together. What arrives is received in
 * order. */
void sim_say(struct sim_socket *socket, const void *p, size_t n);
void sim_says(struct sim_socket *socket, const char *text);
/* Lets one recv answer "again", although more follows. */
void sim_stall(struct sim_socket *socket);
/* Let the end of the peer's half arrive, or an error. */
void sim_end(struct sim_socket *socket);
void sim_break(struct sim_socket *socket, int error);
/* Lets the peer read so many bytes from now on. */
void sim_set_room(struct sim_socket *socket, size_t n);
/* Lets the peer take so many of the bytes that are queued. */
void sim_take(struct sim_socket *socket, size_t n);
/* Lets a reset arrive: bytes that came before can still be received, queued ones are lost, and the
 * error is told once, to whoever receives or sends first. */
void sim_reset(struct sim_socket *socket, int error);
/* Makes every send fail from now on. */
void sim_break_output(struct sim_socket *socket, int error);
/* The number of bytes that have arrived and were not received. */
size_t sim_unread(const struct sim_socket *socket);
/* The bytes that were sent and not forgotten, as a string. */
const char *sim_sent(const struct sim_socket *socket);
void sim_forget_sent(struct sim_socket *socket);
/* The socket of a simulated descriptor; NULL where there is none. */
struct sim_socket *sim_socket_find(struct sim *sim, int fd);
/* The program's process has been killed: what it still sends goes nowhere, and the peer sees a
 * reset. */
void sim_kill(struct sim_socket *socket);
/* Frees a socket that the program has closed. */
void sim_socket_free(struct sim_socket **socket);

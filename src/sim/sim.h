/* SPDX-License-Identifier: BSD-2-Clause */
/* A kernel in memory, under which a loop, or a whole worker, runs in a test: sockets with far ends
 * driven by the harness, clocks turned by the harness, and optional trouble from a seed. Equal
 * calls with an equal seed give an equal run, byte by byte.
 *
 * A mistake of the program under test is a fault, reported to the harness: an operation on a closed
 * descriptor, a close of a watched descriptor, a missing close. A mistake of the harness, and a
 * shortage of the harness's memory, is an assertion.
 *
 * Descriptors of the simulation exist nowhere else, so that calls past the simulation to the real
 * kernel fail. Sources of the real kernel (io_state is NULL) may be watched too, but stay idle,
 * except that notify() works as everywhere, from threads too, and that each wait looks for ready
 * sources among the sources with levels.
 *
 * A simulation belongs to no loop: several loops can run on a simulation, in a single thread, and
 * the simulation outlives the loops. */
#pragma once

#include "base/check.h"
#include "event/loop.h"

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct sim_endpoint;

#define SIM_KIND KIND('s', 'i', 'm', 'k')
#define SIM_PIECES 64

/* A socket of the program, seen by the harness as the peer. The struct stays readable after the
 * program's close, until sim_socket_free(). */
struct sim_socket {
    int fd;
    /* set by the harness, before the program uses the socket */
    size_t send_most; /* bytes that one send takes; SIZE_MAX at first */
    bool lends;       /* recv answers with memory of the simulation */
    bool datagrams;   /* bytes of a send, and bytes of a sim_say(), stay together */
    bool tells_eof;   /* an event announces an end that has arrived, as epoll's events do */
    bool queues;      /* sent bytes stay in the kernel's queue until sim_take() */
    int accept_error; /* the errno of accept on a listener; 0: none */
    struct sockaddr_storage peer, local; /* for accept() and name() */
    socklen_t peer_length, local_length; /* 0: not known; the peer is 192.0.2.1:1234 at first */
    /* set by the simulation: the program's acts */
    int receive_buffer;             /* SO_RCVBUF before the connect; 0: not set */
    bool keepalive;                 /* SO_KEEPALIVE */
    unsigned recvs, sends, splices; /* splices in are receives, too */
    unsigned more_sends;            /* the sends whose bytes may wait */
    size_t room;                    /* bytes that the peer still takes; initially SIZE_MAX */
    uint8_t *sent;
    size_t sent_n;
    bool sealing;                    /* the simulated kernel seals what is sent */
    size_t queued;                   /* the last of the sent bytes, which a reset takes back */
    struct iovec pieces[SIM_PIECES]; /* the first pieces of the latest send */
    int piece_n;
    bool shut, closed, reset;
    bool listening, exclusive; /* watched as a listener */
    unsigned waiting;          /* unaccepted clients of a listener */
    bool broke;                /* reset by simulated trouble: nothing comes through any more */
};

/* The probability of each trouble in thousandths. With values below 1000 a correct program finishes
 * in the end. */
struct sim_trouble {
    unsigned partial_send; /* a send takes a part */
    unsigned partial_recv; /* recv gives a part of the bytes */
    unsigned again;        /* "again", although an event was reported and more is there */
    unsigned spurious;     /* an event without a reason */
    unsigned late;         /* an event comes only with the next wait */
    unsigned reset;        /* a connection breaks when it is received from or sent to */
    unsigned aborted;      /* a client has closed before the accept */
};

struct sim_fault {
    STAILQ_ENTRY(sim_fault) link;
    char text[];
};

enum sim_server_answer { SIM_ACCEPTS, SIM_REFUSES, SIM_SILENT };

/* A server for the program's connects. */
struct sim_server {
    STAILQ_ENTRY(sim_server) link;
    struct sockaddr_storage address;
    socklen_t length;
    enum sim_server_answer answer;
    int error;
    bool at_once;   /* set by the harness: connect() itself returns the result, and no event */
    unsigned tries; /* connects to the server */
    STAILQ_HEAD(, sim_endpoint) waiting;  /* connects without an answer */
    STAILQ_HEAD(, sim_endpoint) accepted; /* connections that the harness has not taken */
};

struct sim {
    unsigned kind;                /* SIM_KIND */
    struct mechanism edge, level; /* for loops: events once a change, or as long as there is one */
    /* set by the harness */
    bool auto_time;     /* a wait in which nothing happens takes as long as was asked for, or,
                        * without an end, until the loop's next timer; no wait ever blocks */
    bool holds_notices; /* notices of threads are held back */
    int watch_error;    /* the errno for watching any source; 0: none */
    int connect_error;  /* the errno for connect(), before a descriptor exists */
    int seal_error;     /* the errno for giving the kernel keys of TLS; 0: none */
    void (*on_wait)(struct loop *loop, int timeout); /* called when a loop begins to wait */
    void (*on_fault)(void *arg, const char *text);   /* called for each mistake of the program */
    void *fault_arg;
    struct clock clock; /* passes by sim_pass(); the wall clock may be set */
    /* set by the simulation */
    unsigned reported;               /* events reported by the latest wait of any loop, */
    int timeout;                     /* ... and its timeout */
    uint64_t digest;                 /* digest of all calls of the program, and of their results */
    STAILQ_HEAD(, sim_fault) faults; /* in order */
    unsigned fault_n;
    /* private */
    RB_HEAD(sim_endpoints, sim_endpoint) endpoints;
    STAILQ_HEAD(, sim_server) servers;
    int next_fd;
    unsigned loop_n;
    struct sim_trouble trouble;
    uint64_t random;
};

/* Makes a simulation without sockets; never NULL. */
struct sim *sim_create(void);
/* Frees a simulation, after its loops are done. An open descriptor of the program is a fault. */
void sim_destroy(struct sim **sim);
/* The simulation of a loop. */
struct sim *sim_of(const struct loop *loop);
/* Reports each descriptor still open in the program as a fault, once. */
void sim_check_closed(struct sim *sim);

/* Lets time pass, which otherwise stands still. */
void sim_pass(struct sim *sim, uint64_t ms);

/* Whether nothing is to be done on the loop until time passes or the harness does something. */
bool sim_idle(const struct loop *loop);
/* Waits, in real time, until a thread has called notify(); false when `ms` have passed. */
bool sim_await_notice(const struct loop *loop, int ms);
/* Lets the bytes of pipes go past the program, for later connections of the simulation. */
void sim_splice(struct sim *sim);

/* Makes trouble from now on; NULL: no more. */
void sim_trouble(struct sim *sim, uint64_t seed, const struct sim_trouble *trouble);
/* Draws a number below `below` from the same source, for the harness's own choices. */
uint32_t sim_random(struct sim *sim, uint32_t below);
/* Draws a number from a source of the caller's: the same sequence on every machine. */
uint32_t sim_draw(uint64_t *state, uint32_t below);
/* Makes a connection with a descriptor for the program. The peer reads everything and sends
 * nothing. */
struct sim_socket *sim_connection(struct sim *sim);
/* Makes a listener, which need not be closed, for the real descriptor `fd`, or for none (-1). */
struct sim_socket *sim_listener(struct sim *sim, int fd);
/* Makes a client of the listener, returned by a later accept. */
struct sim_socket *sim_client(struct sim_socket *listener);

/* Makes a server, which accepts. Without a server connect() fails with ECONNREFUSED. Local
 * addresses of 203.0.113.0/24 are EADDRNOTAVAIL to the program. */
struct sim_server *sim_server(struct sim *sim, const struct sockaddr *address, socklen_t length);
/* Sets the end of connects, also of pending connects; `error` is for refusals (0: ECONNREFUSED). */
void sim_server_answer(struct sim_server *server, enum sim_server_answer answer, int error);
/* Returns the next accepted connection of the server, once; NULL for none. */
struct sim_socket *sim_server_take(struct sim_server *server);

/* Let bytes arrive from the peer; a single recv takes them together. Bytes are received in the
 * order of their arrival. */
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
/* The program's process has been killed: bytes still sent go nowhere, and the peer sees a reset. */
void sim_kill(struct sim_socket *socket);
/* Frees a socket after the program's close. */
void sim_socket_free(struct sim_socket **socket);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of a play with whole workers, from the side of their clients: clients send bytes, and
 * expect an echo. The accepting whole worker is noted in a session, so that a wrong end differs
 * from an allowed end: by the worker's death. */
#pragma once

#include "plays/play.h"

#include "net/address.h"

#define PLAY_SESSIONS_MAX 256

struct play_session {
    int fd;
    struct address address; /* the client's own address, as known to the worker */
    unsigned listener;      /* the case's number of it */
    pid_t worker;           /* pid of the accepting worker; 0: none */
    size_t sent, echoed;    /* bytes */
    uint64_t waited_ms;     /* to be accepted, while a worker was able to accept */
    bool safe;              /* ends only by the client or a death of the worker */
    bool slow;              /* the client receives late */
    bool ended;             /* by the daemon */
    int error;              /* errno of its end; 0: an orderly end */
};

struct play_sessions {
    struct play_session list[PLAY_SESSIONS_MAX];
    unsigned n, port_n;
    unsigned long connected, accepted, served; /* served: sessions with all bytes echoed */
};

/* Connects to an address; NULL: no process listens, with errno. */
struct play_session *play_session_open(
    struct play *play, struct play_sessions *sessions, const struct address *address);
/* Sends n bytes at most. */
void play_session_send(struct play_session *session, size_t n);
/* Receives the bytes so far, and checks them against the bytes sent. */
void play_session_receive(struct play_session *session);
/* Ends the session from the client's side; the list's last session takes the free place. */
void play_session_close(struct play_sessions *sessions, struct play_session *session);
void play_session_close_all(struct play_sessions *sessions);
/* Notes that a worker has accepted the client with the address. */
void play_session_accepted(
    struct play_sessions *sessions, pid_t worker, const struct sockaddr *client, socklen_t length);
/* Whether all sent bytes have come back. */
bool play_session_is_served(const struct play_session *session);
/* How many sessions this worker has. */
unsigned play_sessions_of(const struct play_sessions *sessions, pid_t worker);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of a play with whole workers, from the side of their clients: each sends bytes, and
 * expects them back. A whole worker that accepts a session is noted in it, so that a session which
 * ends can be told from one that may end: because its worker was killed. */
#pragma once

#include "plays/play.h"

#include "net/address.h"

#define PLAY_SESSIONS_MAX 256

struct play_session {
    int fd;
    struct address address; /* the client's own, by which the worker knows it */
    unsigned listener;      /* the case's number of it */
    pid_t worker;           /* the one that has accepted it; 0: none has */
    size_t sent, echoed;    /* bytes */
    uint64_t waited_ms;     /* to be accepted, while a worker could have done it */
    bool safe;              /* ended by its client or its worker's death alone */
    bool slow;              /* the client receives late */
    bool ended;             /* by the daemon */
    int error;              /* an errno by which it has ended; 0: an orderly end */
};

struct play_sessions {
    struct play_session list[PLAY_SESSIONS_MAX];
    unsigned n, port_n;
    unsigned long connected, accepted, served; /* served: it got back all that it had sent */
};

/* Connects to an address; NULL: nobody listens, with errno. */
struct play_session *play_session_open(
    struct play *play, struct play_sessions *sessions, const struct address *address);
/* Sends n bytes at most. */
void play_session_send(struct play_session *session, size_t n);
/* Receives what has come, and checks that it is what was sent. */
void play_session_receive(struct play_session *session);
/* Ends the session from the client's side; the list's last one takes its place. */
void play_session_close(struct play_sessions *sessions, struct play_session *session);
void play_session_close_all(struct play_sessions *sessions);
/* Notes that a worker has accepted the client of this address. */
void play_session_accepted(
    struct play_sessions *sessions, pid_t worker, const struct sockaddr *client, socklen_t length);
/* Whether everything that was sent has come back. */
bool play_session_is_served(const struct play_session *session);
/* How many sessions this worker has. */
unsigned play_sessions_of(const struct play_sessions *sessions, pid_t worker);

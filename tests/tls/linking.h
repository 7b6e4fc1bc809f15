/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's link to an engine, without cryptography unless the test says else, in this process or
 * in a keeper that the test plays. */
#pragma once

#include "support/fixture.h"
#include "tls/handshakes.h"
#include "tls/link.h"

/* The kinds of links, as the argument of loop tests. */
enum { LOCAL, REMOTE, LINKS };

/* A handshake of the worker's. */
struct user {
    struct tls_pending pending;
    unsigned replies;
    enum tls_step step;
    size_t used, out_n;
    uint8_t out[TLS_FLIGHT_MOST];
    struct tls_session session;
    char text[TLS_TEXT];
};

extern const struct tls_engine_ops *engine_ops; /* engine of the next start() */
extern struct fixture *fixture;
extern struct tls_link *link_;
extern int keeper; /* the keeper's end of a link; -1: none */
extern struct tls_handshakes *handshakes;
extern struct user users[TLS_HANDSHAKES_MOST + 1], peer;
extern uint8_t packet[TLS_PART_SIZE_MOST + 1];
extern unsigned lost;   /* how often the link was */
extern uint8_t name[9]; /* the server's; may change once a feed has copied it */

void start(int kind);
void stop(void);
void note_lost(struct loop *loop);
void note_reply(struct tls_pending *pending, enum tls_step step, const struct tls_reply *reply);
/* Begins a handshake by the profile of the role. */
void begin(struct user *user, enum tls_role role);
void feed(struct user *user, const void *p, size_t n);
/* A keeper process begins, and ends, if any runs. */
void connect_link(void);
void lose(void);
/* Receives a request as the keeper does; false: the socket is empty. */
bool receive(struct tls_request *request);
void reply_to(uint32_t number, enum tls_step step, const struct tls_reply *reply);
/* Does a keeper's work, if there is a keeper, and the loop's. */
void work(void);

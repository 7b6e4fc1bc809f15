/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS by the engine without cryptography for the servers of session/ways.h, and clients that shake
 * hands by the same engine, and seal and open afterwards (tls/sealing.h). */
#pragma once

#include "tls/link.h"
#include "tls/sealing.h"

/* The link of a test: replies come from the loop, or when the test says so. */
enum tls_link_kind { TLS_LINK_LOCAL, TLS_LINK_HELD };

/* The profiles of the two servers, which a test may change; their timeout is 3000 ms. File 0 is the
 * certificate of "one.tests". */
extern struct tls_profile tls_profiles[2];

/* Begins TLS in a worker. */
void tls_begin(struct fixture *fixture, enum tls_link_kind kind);
/* Ends all sessions, and TLS in the worker. */
void tls_end(struct fixture *fixture);
/* Lets server i shake hands with the clients of its address. */
void tls_add_server(struct scripted_server *scripted, unsigned i);

/* Of TLS_LINK_HELD: the number of held requests, and the profile and the paths of the first. */
unsigned tls_held_n(void);
uint32_t tls_held_profile(void);
fb_bytes tls_held_paths(void);
/* Reply to the first: by the engine, or as the test says. */
void tls_reply_held(void);
void tls_reply_held_by(enum tls_step step, struct tls_reply *reply);

struct tls_client {
    struct sim_socket *socket;
    struct tls_handshake *handshake;
    struct sealing peer;          /* once the handshake is done */
    struct sealing_bytes waiting; /* bytes to say */
    enum tls_step step;
    char text[TLS_TEXT]; /* of TLS_FAILED */
};

/* Makes a client of a socket, whose hello waits to be said. */
struct tls_client *tls_client_create(struct sim_socket *socket);
/* Makes a server of a socket that the worker has connected, by the first profile. */
struct tls_client *tls_server_create(struct sim_socket *socket);
void tls_client_destroy(struct tls_client **client);
/* Takes what was sent to the client; bytes of the handshake wait to be said. */
void tls_client_look(struct tls_client *client);
/* Says n of the waiting bytes at most. */
void tls_client_say(struct tls_client *client, size_t n);
/* Seals a text behind what waits; the handshake is done. */
void tls_client_add(struct tls_client *client, const char *text);
/* Shakes hands whole, and runs the worker. */
void tls_client_shake(struct tls_client *client, struct fixture *fixture);

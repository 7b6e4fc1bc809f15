/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of an engine of OpenSSL, and servers of libssl, in memory. */
#pragma once

#include "talk.h"

/* A handshake between the engine's client and a server. */
struct call {
    SSL *server; /* the test sets it up */
    BIO *to_client, *to_server;
    struct tls_handshake *handshake;
    struct tls_reply reply;
    enum tls_step step;
    size_t piece;     /* bytes of each feed(); 0: all there are */
    unsigned feeds;   /* the most of them; 0: no limit */
    unsigned tickets; /* records with tickets, passed over by call_prove() */
    struct ciphers *ciphers;
};

/* Opens an engine whose profile 0 is a client's. */
void call_open(struct talk_server *engine);
/* A context of servers with these versions, and the identity "ec". */
SSL_CTX *call_server(int least, int most);
/* Begins with profile 0. */
void call_begin(
    struct call *call, struct talk_server *engine, SSL_CTX *server, const struct tls_start *start);
/* A start with the name of a server. */
struct tls_start call_start(const char *name);
/* Goes on until the engine is done or has failed, or the server has nothing more to say. */
void call_run(struct call *call);
/* Reads the server's next record, a whole one; returns its bytes; 0: none. */
size_t call_record(struct call *call, uint8_t record[TLS_HEADER + TLS_SEALED_MOST]);
/* Gives the engine the server's records, all of tickets. */
void call_tickets(struct call *call);
/* Reads and writes records of data by the engine's keys. */
void call_prove(struct call *call);
void call_end(struct call *call);
/* Begins, and runs a handshake that succeeds. */
void call_through(
    struct call *call, struct talk_server *engine, SSL_CTX *server, const struct tls_start *start);

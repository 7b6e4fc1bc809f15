/* SPDX-License-Identifier: BSD-2-Clause */
/* An engine of OpenSSL with profiles and files of the test's directory, and clients of libssl that
 * talk to it in memory. */
#pragma once

#include "keeper/engine.h"
#include "support/certificates.h"
#include "support/memory_log.h"
#include "support/test.h"
#include "tls/record.h"

#include <openssl/ssl.h>

#define TALK_FILES 16

/* The identities of a program, whose files are NAME.pem and NAME.key. */
struct talk_identities {
    struct identity ca, ec, rsa;
};

extern struct talk_identities identities;

/* Adds the directory with the files to the tests; call first. */
void talk_add(TCase *tcase);

/* A server, or by its profile's role a client: fill in the profile between talk_open() and
 * talk_start(). */
struct talk_server {
    struct tls_files ops;
    struct tls_profiles profiles;
    struct tls_profile profile; /* index 0; TLS 1.2 and 1.3 with "ec" unless the test says else */
    struct tls_pair pairs[4];
    struct tls_file files[TALK_FILES];
    char paths[TALK_FILES][128];
    fb_bytes names; /* the start's */
    struct memory_log log;
    struct tls_engine *engine;
};

void talk_open(struct talk_server *server);
/* Names a file of the directory; returns its index. */
uint32_t talk_file(struct talk_server *server, const char *name);
/* Adds a pair of NAME.pem and NAME.key. */
void talk_pair(struct talk_server *server, const char *certificate, const char *key);
void talk_start(struct talk_server *server);
/* Fails to create an engine; returns the lines of the log. */
const char *talk_mistakes(struct talk_server *server);
void talk_close(struct talk_server *server);

/* A handshake between a client and the engine. */
struct talk {
    SSL *client; /* the test sets it up */
    BIO *to_client, *to_server;
    struct tls_handshake *handshake;
    struct tls_reply reply;
    enum tls_step step;
    size_t piece;   /* bytes of each feed(); 0: all there are */
    unsigned feeds; /* the most of them; 0: no limit */
    bool early;     /* the client has sent "early" with its last flight */
};

/* Begins with profile 0. */
void talk_begin(struct talk *talk, struct talk_server *server, SSL_CTX *client);
/* Goes on until the engine is done or has failed, or the client has nothing more to say. */
void talk_run(struct talk *talk);
/* Reads and writes records of data by the keys that the engine has handed over. */
void talk_prove(struct talk *talk);
void talk_end(struct talk *talk);
/* Begins, runs, proves and ends a handshake, and fails unless the handshake succeeds. */
void talk_through(struct talk *talk, struct talk_server *server, SSL_CTX *client);
/* A context of clients with these versions, TLS1_2_VERSION and the like. */
SSL_CTX *talk_client(int least, int most);

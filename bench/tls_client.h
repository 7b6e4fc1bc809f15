/* SPDX-License-Identifier: BSD-2-Clause */
/* A client's session with a server, over TLS by libssl or plain. Never resumes a session unless the
 * caller offers one. Calls do not block, apart from connect(). */
#pragma once

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tls_client {
    int fd;              /* -1: no connection */
    SSL *ssl;            /* NULL: plain */
    SSL_SESSION *ticket; /* of the newest connection that received a ticket; owned */
    bool open;           /* the handshake is done */
    bool resumed;        /* the handshake was a resumption */
};

/* A context for the version ("1.2", "1.3"), NULL for "plain". Pins AES-128-GCM and X25519, so that
 * all servers do equal work; P-256 is for the curve of certificates. Ends the program when the version is unknown. */
SSL_CTX *tls_client_context(const char *version);

/* Connects from 127.0.0.1 and registers the socket in the epoll descriptor, edge-triggered, with
 * `client` as data. Offers the ticket of `client` if `resumes`. Ends the program when the kernel
 * refuses. */
void tls_client_open(struct tls_client *client, SSL_CTX *context, const struct sockaddr_in *to,
    int epoll, bool resumes);

/* Goes on with the handshake, and sets `open` at its end; false: the server refused it. */
bool tls_client_shake(struct tls_client *client);

/* Bytes moved, at least 1; 0: none without an event; -1: the connection has failed or ended;
 * libssl's reason is written to standard error. */
long tls_client_read(struct tls_client *client, void *bytes, size_t n);
long tls_client_write(struct tls_client *client, const void *bytes, size_t n);

/* Sends close_notify and closes; the ticket stays. */
void tls_client_close(struct tls_client *client);

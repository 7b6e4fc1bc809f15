/* SPDX-License-Identifier: BSD-2-Clause */
/* A session of libssl's client with a daemon that echoes. In a build without OpenSSL the calls do
 * nothing, and TLS_CLIENT_SERVER is empty. */
#pragma once

#include "daemon/daemon.h"

/* The server for such sessions, with the files of tls_client_make_files(). */
#if HAVE_OPENSSL
#define TLS_CLIENT_SERVER(port)                                                                    \
    "server { listen 127.0.0.1:" port " ssl; ssl_certificate $D/tls.example.crt; "                 \
    "ssl_certificate_key $D/tls.example.key; echo; } "
#else
#define TLS_CLIENT_SERVER(port) ""
#endif

struct ssl_st;
struct ssl_ctx_st;

struct tls_client {
    struct ssl_ctx_st *context;
    struct ssl_st *ssl; /* NULL: no session */
    int fd;
};

/* Makes a certificate and its key, in the daemon's directory. */
void tls_client_make_files(struct daemon *daemon);
/* Connects, and shakes hands; false: the handshake has failed. */
bool tls_client_begin(struct tls_client *client, in_port_t port);
/* Shakes hands on a connection, which is the session's from now on. */
bool tls_client_begin_on(struct tls_client *client, int fd);
/* Sends a text, and expects it back. */
void tls_client_echo(const struct tls_client *client, const char *text);
/* Ends a session, if there is one. */
void tls_client_end(struct tls_client *client);

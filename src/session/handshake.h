/* SPDX-License-Identifier: BSD-2-Clause */
/* A TLS handshake on an open connection, in either role: the peer's bytes go to the engine, and the
 * engine's to the peer, until both have finished and the layer is on the connection.
 *
 * Reading stops while a reply is awaited: the bytes stay with the connection until the reply says
 * how many belong to the handshake. The owner has the connection's callbacks, deadlines and end. */
#pragma once

#include "session/conn.h"
#include "tls/link.h"

#define SESSION_HANDSHAKE_KIND KIND('S', 'H', 'A', 'K')

/* Embedded in the owner's memory. */
struct session_handshake {
    unsigned kind;
    struct fb_conn *conn;
    struct tls_pending pending;
    bool offload; /* the kernel may seal the session's output */
    size_t fed;   /* bytes of the unconsumed input that the engine has been given */
    /* The layer is on the connection; `reply` is valid until the return. */
    void (*done)(struct session_handshake *handshake, const struct tls_reply *reply);
    /* Without a handshake: the log has the reason. The owner ends the connection, after what the
     * engine has still to say was written. */
    void (*failed)(struct session_handshake *handshake);
};

void session_handshake_init(struct session_handshake *handshake, struct fb_conn *conn,
    void (*done)(struct session_handshake *handshake, const struct tls_reply *reply),
    void (*failed)(struct session_handshake *handshake));
/* Gives the peer's bytes, none only at a client's begin, and stops reading until the reply. Begins
 * the handshake at first; false: no handshake can begin, and the log says so. */
bool session_handshake_feed(
    struct session_handshake *handshake, const struct tls_start *start, fb_bytes in);
/* What the owner's `eof` does: the peer has gone. */
void session_handshake_eof(struct fb_conn *conn, fb_bytes rest);
/* What the owner's `expired` does: ends the connection `timeout` ms after `since`, with the reason,
 * and until then sets the next deadline. */
void session_handshake_expired(
    struct fb_conn *conn, uint64_t since, uint64_t timeout, fb_reason reason);
/* Forgets the handshake, at any time. */
void session_handshake_leave(struct session_handshake *handshake);

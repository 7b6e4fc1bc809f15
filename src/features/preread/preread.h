/* SPDX-License-Identifier: BSD-2-Clause */
/* The phase of a session in which its client's first bytes are looked at before a protocol has
 * them, so that what they say can decide what is done with the client: a TLS client names the
 * server that it wants.
 *
 * Responsible for the bytes until that is known, for the time and the memory that it may take, and
 * for variables of what was found. Invariant: the protocol is given all of the bytes, as if they
 * had come behind its `opened`. */
#pragma once

#include "features/preread/client_hello.h"
#include "session/record.h"
#include "text/variable.h"

/* The feature's struct of a server. */
struct preread_values {
    int64_t ssl_preread;
    int64_t buffer_size; /* bytes */
    int64_t timeout;     /* ms */
};

/* In the memory of the session. */
struct preread_part {
    struct session_part part; /* the first member */
    uint64_t since;           /* monotonic ms: when the phase began */
    struct client_hello hello;
    bool has_bytes; /* some have come */
    /* what the message says, as text */
    const char *name, *protocols;
    uint32_t name_n, protocols_n;
};

/* Handles PHASE_PREREAD: enters SESSION_PREREAD. Returns 0; without memory the connection has
 * failed. */
unsigned preread_begin(struct fb_conn *conn, const void *arg);

/* Returns what the first bytes of the connection's session say; NULL: nobody has asked. */
struct preread_part *preread_of(const struct fb_conn *conn);

/* variables.c: What is known by the ClientHello. */
extern const struct variable_row variables_preread[];

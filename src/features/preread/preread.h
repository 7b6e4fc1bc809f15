/* SPDX-License-Identifier: BSD-2-Clause */
/* The phase of a session that looks at the client's first bytes before a protocol gets them, so
 * that the bytes can decide about the client: a TLS client names the server.
 *
 * Responsible for the bytes until the phase ends, for the time and the memory of the phase, and for
 * variables with the results. Invariant: the protocol is given all of the bytes, as if received
 * after `opened`. */
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

/* Returns the values from the session's first bytes; NULL: the session had no preread phase. */
struct preread_part *preread_of(const struct fb_conn *conn);

/* variables.c: What is known by the ClientHello. */
extern const struct variable_row variables_preread[];

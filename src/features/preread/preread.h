/* SPDX-License-Identifier: BSD-2-Clause */
/* The phase of a session that looks at the client's first bytes before a protocol gets them, so
 * that the bytes can decide about the client: a TLS client names the server.
 *
 * Responsible for the bytes until the phase ends, for the time and the memory of the phase, and for
 * variables with the results. Invariant: the protocol is given all of the bytes, as if received
 * after `opened`. */
#pragma once

#include <stdint.h>

struct fb_conn;

/* The feature's struct of a server. */
struct preread_values {
    int64_t ssl_preread;
    int64_t buffer_size; /* bytes */
    int64_t timeout;     /* ms */
};

/* Handles PHASE_PREREAD: enters SESSION_PREREAD. Returns 0. */
unsigned preread_begin(struct fb_conn *conn, const void *arg);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The ClientHello at the start of a client's TLS: the protocol, server and application that the
 * client asks for. Read without taking part in the handshake.
 *
 * Responsible for the bytes alone, which may come in any pieces: each call goes on behind the last
 * whole record. Never allocates, and never looks behind the given bytes. Invariant: a known value
 * stays true for any further bytes. */
#pragma once

#include <forkbeard/types.h>
#include <stddef.h>
#include <stdint.h>

enum tls_hello_status {
    TLS_HELLO_MORE,  /* the next record is not whole */
    TLS_HELLO_WHOLE, /* the message is whole; bytes behind are ignored */
    TLS_HELLO_NONE,  /* no TLS, or malformed */
};

/* Bytes of the message: the records without their headers. */
struct tls_hello_part {
    uint32_t at, n;
};

/* Zeroed before the first call. */
struct tls_hello {
    uint8_t status; /* enum tls_hello_status; the last two are final */

    /* what is known */
    uint16_t version;                /* number as in TLS; 0: none yet */
    struct tls_hello_part name;      /* of the server */
    struct tls_hello_part protocols; /* names of ALPN, each behind a length of at least 1 */

    /* how far it has come */
    uint8_t step;
    uint8_t has;        /* extensions that may come once: bits */
    size_t at;          /* bytes of the input that were looked at */
    uint32_t taken;     /* bytes of the message */
    uint32_t need;      /* ... that the step lacks */
    uint32_t number;    /* the number read by the step, where the step is a number */
    uint32_t left;      /* bytes of the message that are to come */
    uint32_t extension; /* ... of an extension's contents */
};

/* Parses the received bytes: `in` begins with the client's first byte, at every call. */
enum tls_hello_status tls_hello_parse(struct tls_hello *hello, fb_bytes in);
/* Copies a fully parsed part, from the same input. */
void tls_hello_copy(fb_bytes in, struct tls_hello_part part, uint8_t *out);
/* Writes the protocols with commas, part.n - 1 bytes; `out` has room for part.n. */
void tls_hello_list(fb_bytes in, struct tls_hello_part part, uint8_t *out);
/* Returns OpenSSL's name of a version; "" for a version without a name. */
const char *tls_hello_version(uint16_t version);

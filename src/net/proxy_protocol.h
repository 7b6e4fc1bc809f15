/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of the PROXY protocol, by which a proxy names the connection passed on. The caller
 * decides on trust. Invariant: while more bytes may complete a header, the answer is
 * PROXY_PROTOCOL_MORE, and with the first impossible byte PROXY_PROTOCOL_BROKEN, but for the fields
 * of a line, read when it is whole. */
#pragma once

#include "net/address.h"

#include <forkbeard/types.h>

/* Bytes of the longest headers, with "\r\n" in version 1. */
#define PROXY_PROTOCOL_LINE 107
#define PROXY_PROTOCOL_LONGEST (16 + 65535)
/* Bytes of the longest header from an untrusted address. */
#define PROXY_PROTOCOL_UNTRUSTED 4096

/* Types of the TLVs after the addresses of version 2. */
enum proxy_protocol_type {
    PROXY_PROTOCOL_ALPN = 0x01,
    PROXY_PROTOCOL_AUTHORITY = 0x02,
    PROXY_PROTOCOL_CRC32C = 0x03,
    PROXY_PROTOCOL_UNIQUE_ID = 0x05,
    PROXY_PROTOCOL_SSL = 0x20,
    PROXY_PROTOCOL_SSL_VERSION = 0x21, /* within PROXY_PROTOCOL_SSL, as are those up to 0x28 */
    PROXY_PROTOCOL_SSL_CN = 0x22,
    PROXY_PROTOCOL_SSL_CIPHER = 0x23,
    PROXY_PROTOCOL_SSL_SIG_ALG = 0x24,
    PROXY_PROTOCOL_SSL_KEY_ALG = 0x25,
    PROXY_PROTOCOL_SSL_CLIENT_CERT = 0x28,
    PROXY_PROTOCOL_NETNS = 0x30,
};

enum proxy_protocol_status {
    PROXY_PROTOCOL_MORE,   /* a header has begun */
    PROXY_PROTOCOL_WHOLE,  /* the bytes begin with a header */
    PROXY_PROTOCOL_BROKEN, /* they begin with none */
};

struct proxy_protocol {
    size_t length; /* bytes of the header; 0: not known yet */
    /* false: the sender speaks for itself (LOCAL), or does not say for whom (UNKNOWN, AF_UNSPEC) */
    bool has_addresses;
    struct address source, destination; /* ends of the connection passed on */
    /* parts of the header: hosts as spelled in version 1, TLVs of version 2; else empty */
    fb_bytes source_text, destination_text, tlvs;
};

/* Parses a connection's first bytes into *out; the length is set as soon as known. */
enum proxy_protocol_status proxy_protocol_parse(fb_bytes in, struct proxy_protocol *out);
/* Finds the first value of a type; false: there is none before the end, or before damage. */
bool proxy_protocol_find(fb_bytes tlvs, unsigned type, fb_bytes *value);
/* Splits the value of PROXY_PROTOCOL_SSL into the verification's result, 0: verified, and details
 * by type; false: too short. */
bool proxy_protocol_ssl(fb_bytes value, uint32_t *verify, fb_bytes *tlvs);

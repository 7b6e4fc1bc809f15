/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages between a worker and its keeper, a packet of a SOCK_SEQPACKET socket each.
 *
 * Responsible for the layout, which both ends have from one build, and for the range of each field.
 * Never sends, and never knows which handshakes are under way. Invariant: every byte of a message
 * was written by the sender, and a message that was read has only fields in range. */
#pragma once

#include "tls/engine.h"

/* Handshakes under way between a worker and its keeper. */
#define TLS_HANDSHAKES_MOST 1000

/* A number's place among the handshakes under way; the other bits are a generation, never 0. */
#define TLS_PLACE_BITS 10
#define TLS_PLACE(number) ((number) & ((1u << TLS_PLACE_BITS) - 1))

/* The bytes for the peer in a part of a reply. */
#define TLS_PART_MOST 16384
/* The bytes of the longest message of each direction. */
#define TLS_REQUEST_MOST (32 + TLS_PATHS_MOST + TLS_FEED_MOST)
#define TLS_PART_SIZE_MOST                                                                         \
    (40 + TLS_PART_MOST + sizeof(struct tls_session) + TLS_PEER_MOST + TLS_FACTS_MOST)

enum tls_request_kind {
    TLS_BEGIN = 1, /* a new handshake; of a server with the peer's first bytes */
    TLS_FEED,      /* the peer's next bytes */
    TLS_CANCEL,    /* the worker has forgotten the handshake, or awaits no more tickets */
    TLS_TICKET,    /* a record with a ticket, behind a handshake; has no reply */
};

/* A worker's message. */
struct tls_request {
    enum tls_request_kind kind;
    uint32_t number;
    struct tls_start start; /* fields of TLS_BEGIN; name and paths lie in the message */
    fb_bytes in; /* bytes of TLS_FEED, TLS_TICKET, and TLS_BEGIN of a server; within the message */
};

/* A keeper's message: a part of the reply to a request. */
struct tls_part {
    uint32_t number;
    bool more; /* another part of the reply follows, and holds all but `out` */
    enum tls_step step;
    uint32_t used;
    fb_bytes out;
    struct tls_session session; /* of TLS_DONE */
    fb_bytes peer, facts;       /* of TLS_DONE */
    bool severe;                /* of TLS_FAILED, as is the text */
    char text[TLS_TEXT];
};

/* Writes a request of valid fields to memory of TLS_REQUEST_MOST bytes; returns the bytes. */
size_t tls_message_write_request(const struct tls_request *request, uint8_t *p);
/* Reads a request; -1: no request, or a field out of range. */
int tls_message_read_request(struct tls_request *request, const uint8_t *p, size_t n);
/* Writes the part of a reply that begins at byte `from` of reply->out, to memory of
 * TLS_PART_SIZE_MOST bytes; the last part holds the end of `out`. Returns the bytes. */
size_t tls_message_write_part(
    uint32_t number, enum tls_step step, const struct tls_reply *reply, size_t from, uint8_t *p);
/* Reads a part; `out`, `peer` and `facts` lie in the message. -1: no part, or a field out of
 * range. */
int tls_message_read_part(struct tls_part *part, const uint8_t *p, size_t n);

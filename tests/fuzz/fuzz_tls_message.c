/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between a worker and a keeper, one of which is in foreign hands. The first byte chooses
 * the reader; what is read has only fields in range, and is written again as it was. */
#include "fuzz/input.h"

#include "tls/message.h"

#include <string.h>

/* Reads a worker's message. */
static void read_request(const uint8_t *p, size_t n)
{
    static uint8_t again[TLS_REQUEST_MOST];
    struct tls_request request;

    if (tls_message_read_request(&request, p, n) == -1)
        return;
    require(TLS_PLACE(request.number) < TLS_HANDSHAKES_MOST, "a number has a place");
    require(request.number >> TLS_PLACE_BITS != 0, "a number has a generation");
    require(request.in.n <= TLS_FEED_MOST, "bytes have a limit");
    require(request.in.n == 0 || (request.in.p >= p && request.in.p + request.in.n == p + n),
        "bytes lie in the message");
    require(
        request.start.name.n <= TLS_NAME_MOST && (request.in.n == 0 || request.start.name.n == 0),
        "a name has a limit, and no bytes of a peer behind it");
    require(
        request.start.paths.n == 0 || (request.start.paths.n <= TLS_PATHS_MOST &&
                                          request.start.paths.p[request.start.paths.n - 1] == '\0'),
        "paths have a limit, and an end");
    require(tls_message_write_request(&request, again) == n && memcmp(again, p, n) == 0,
        "a request has one form");
}

/* Reads a part written again by the rules of a keeper, which sends no padding. */
static void compare_part(const struct tls_part *part, size_t n)
{
    static uint8_t again[TLS_PART_SIZE_MOST], out[TLS_PART_MOST + 1];
    struct tls_reply reply = {
        .used = part->used,
        .out = out,
        .out_n = part->out.n + part->more, /* a byte more makes another part */
        .session = part->session,
        .peer = (uint8_t *)part->peer.p,
        .peer_n = part->peer.n,
        .facts = (uint8_t *)part->facts.p,
        .facts_n = part->facts.n,
        .severe = part->severe,
    };
    struct tls_part other;

    if (part->out.n > 0)
        memcpy(out, part->out.p, part->out.n);
    memcpy(reply.text, part->text, sizeof(reply.text));
    require(tls_message_write_part(part->number, part->step, &reply, 0, again) == n,
        "a part has one length");
    require(tls_message_read_part(&other, again, n) == 0, "a written part can be read");
    require(other.number == part->number && other.step == part->step && other.more == part->more &&
                other.used == part->used,
        "fields stay");
    require(memcmp(&other.session.in, &part->session.in, offsetof(struct tls_keys, iv)) == 0,
        "keys stay");
    require(other.facts.n == part->facts.n && tls_facts_check(other.facts), "facts stay");
    require(strcmp(other.text, part->text) == 0 && other.severe == part->severe, "a text stays");
}

/* Reads a keeper's message. */
static void read_part(const uint8_t *p, size_t n)
{
    struct tls_part part;

    if (tls_message_read_part(&part, p, n) == -1)
        return;
    require(TLS_PLACE(part.number) < TLS_HANDSHAKES_MOST, "a number has a place");
    require(part.step <= TLS_FAILED && part.used <= TLS_FEED_MOST, "fields are in range");
    require(part.out.n <= TLS_PART_MOST && part.peer.n <= TLS_PEER_MOST, "bytes have a limit");
    require(part.out.p >= p && part.out.p + part.out.n <= p + n, "bytes lie in the message");
    require(
        part.step != TLS_DONE || (part.peer.p >= p && part.peer.p + part.peer.n == part.facts.p &&
                                     part.facts.p + part.facts.n == p + n),
        "a certificate and facts lie in the message");
    require(memchr(part.text, '\0', sizeof(part.text)) != NULL, "a text has an end");
    require(part.step != TLS_DONE || part.session.session_id_n <= 32, "an identifier has a limit");
    compare_part(&part, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy;

    if (size == 0)
        return 0;
    copy = malloc(size); /* for a sanitizer to see its end */
    require(copy != NULL, "memory");
    memcpy(copy, data + 1, size - 1);
    if (data[0] % 2 == 0)
        read_request(copy, size - 1);
    else
        read_part(copy, size - 1);
    free(copy);
    return 0;
}

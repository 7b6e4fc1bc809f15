/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on the addresses of a connection's two ends, and on the text form. */
#include "net/address_parse.h"
#include "sdk/handle.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

/* A text with the most bytes of an address of IPv4 or IPv6. */
#define LONGEST "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535"

static void copy_to_storage(struct sockaddr_storage *out, const struct address *address)
{
    assert(address->length <= sizeof(*out));
    out->ss_family = address->any.sa_family;
    memcpy(out, &address->any, address->length);
}

int fb_peer_address(const fb_conn *conn, struct sockaddr_storage *out)
{
    struct address peer;

    if (!SDK_VALID(conn))
        return -1;
    memset(out, 0, sizeof(*out));
    if (conn->outgoing) {
        copy_to_storage(out, &session_target_of(conn->session)->address);
    } else {
        conn_peer_address(conn, &peer);
        copy_to_storage(out, &peer);
    }
    return 0;
}

int fb_local_address(const fb_conn *conn, struct sockaddr_storage *out)
{
    socklen_t length = sizeof(*out);

    if (!SDK_VALID(conn))
        return -1;
    memset(out, 0, sizeof(*out));
    return conn->source.io->name(&conn->source, (struct sockaddr *)out, &length);
}

char *fb_address_text(const struct sockaddr_storage *address, char *text, size_t size)
{
    struct address a = { .length = sizeof(a.un) };
    char whole[ADDRESS_TEXT];

    memcpy(&a.un, address, sizeof(a.un));
    snprintf(text, size, "%s", address_format(&a, true, whole));
    return text;
}

/* Reads an address, with or without a port. Brackets need a port, and a port needs brackets. */
static bool parse_address_text(fb_bytes in, struct sockaddr_storage *out)
{
    struct address address = { .length = sizeof(address.in6), .in6.sin6_family = AF_INET6 };
    char text[sizeof(LONGEST)];

    if (in.n == 0 || in.n >= sizeof(text) || memchr(in.p, '\0', in.n) != NULL ||
        in.p[in.n - 1] == ']')
        return false;
    memcpy(text, in.p, in.n);
    text[in.n] = '\0';
    if (inet_pton(AF_INET6, text, &address.in6.sin6_addr) != 1 &&
        (address_parse(text, 0, &address) != NULL || address.any.sa_family == AF_UNIX))
        return false;
    copy_to_storage(out, &address);
    return true;
}

int fb_parse_address(fb_bytes text, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof(*out));
    return parse_address_text(text, out) ? 0 : -1;
}

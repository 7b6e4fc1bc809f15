/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls on the addresses of a connection's two ends, and on the text form. */
#include "net/target.h"
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

/* Reads an address without a port. */
static bool parse_host_text(const char *text, struct sockaddr_storage *out)
{
    struct sockaddr_in *in = (struct sockaddr_in *)out;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
        out->ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
        out->ss_family = AF_INET6;
    return out->ss_family != AF_UNSPEC;
}

/* Reads a port, 1 to 65535; 0 for anything else. */
static uint16_t parse_port_text(const char *text)
{
    unsigned port = 0;

    for (const char *p = text; *p != '\0'; p++) {
        if (*p < '0' || *p > '9' || port > 6553)
            return 0;
        port = port * 10 + (unsigned)(*p - '0');
    }
    return port <= 65535 ? (uint16_t)port : 0;
}

/* Reads an address, with or without a port. */
static bool parse_address_text(fb_bytes in, struct sockaddr_storage *out)
{
    char text[sizeof(LONGEST)], *host = text, *colon;
    uint16_t port;

    if (in.n == 0 || in.n >= sizeof(text) || memchr(in.p, '\0', in.n) != NULL)
        return false;
    memcpy(text, in.p, in.n);
    text[in.n] = '\0';
    if (parse_host_text(text, out))
        return true;
    colon = strrchr(text, ':');
    port = colon != NULL ? parse_port_text(colon + 1) : 0;
    if (port == 0)
        return false;
    *colon = '\0';
    if (*host == '[' && colon > host && colon[-1] == ']') {
        colon[-1] = '\0';
        host++;
    }
    if (!parse_host_text(host, out) || (out->ss_family == AF_INET6) != (host > text))
        return false;
    if (out->ss_family == AF_INET)
        ((struct sockaddr_in *)out)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)out)->sin6_port = htons(port);
    return true;
}

int fb_parse_address(fb_bytes text, struct sockaddr_storage *out)
{
    if (parse_address_text(text, out))
        return 0;
    memset(out, 0, sizeof(*out));
    return -1;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The PROXY header, version 1 or 2, which tells a server the client's addresses.
 *
 * Version 2 also tells of the TLS of the client. Addresses are the session's: for a client behind a
 * believed header, the header's. Where the families of the two ends differ therefore, both are sent
 * as IPv6 addresses, because a header has one family. */
#include "protocols/proxy/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* An end of the connection: as an IPv4 address, and as an IPv6 address. */
struct end {
    bool is_ipv4;
    struct in_addr ipv4;
    struct in6_addr ipv6;
    in_port_t port; /* in the order of the network */
};

/* Reads an address; false: neither IPv4 nor IPv6. */
static bool read_end(struct end *end, const struct sockaddr_storage *address)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;

    end->is_ipv4 = address->ss_family == AF_INET;
    if (end->is_ipv4) {
        end->ipv4 = in->sin_addr;
        end->port = in->sin_port;
        memset(&end->ipv6, 0, sizeof(end->ipv6));
        memset(end->ipv6.s6_addr + 10, 0xff, 2);
        memcpy(end->ipv6.s6_addr + 12, &end->ipv4, 4);
        return true;
    }
    end->ipv6 = in6->sin6_addr;
    end->port = in6->sin6_port;
    return address->ss_family == AF_INET6;
}

/* Reads both ends; false where a header cannot name them. */
static bool read_ends(fb_conn *client, struct end ends[2])
{
    struct sockaddr_storage peer, local;

    return fb_peer_address(client, &peer) == 0 && fb_local_address(client, &local) == 0 &&
           read_end(&ends[0], &peer) && read_end(&ends[1], &local);
}

static size_t make_v1(char line[PROXY_HEADER_MOST], const struct end ends[2], bool known)
{
    char text[2][INET6_ADDRSTRLEN];
    bool is_ipv4 = known && ends[0].is_ipv4 && ends[1].is_ipv4;

    for (int i = 0; i < 2 && known; i++)
        inet_ntop(is_ipv4 ? AF_INET : AF_INET6,
            is_ipv4 ? (const void *)&ends[i].ipv4 : (const void *)&ends[i].ipv6, text[i],
            sizeof(text[i]));
    if (!known)
        strcpy(line, "PROXY UNKNOWN\r\n");
    else
        snprintf(line, PROXY_HEADER_MOST, "PROXY %s %s %s %u %u\r\n", is_ipv4 ? "TCP4" : "TCP6",
            text[0], text[1], ntohs(ends[0].port), ntohs(ends[1].port));
    return strlen(line);
}

static size_t make_v2(
    fb_conn *client, uint8_t header[PROXY_HEADER_MOST], const struct end ends[2], bool known)
{
    const struct proxy_worker *own = fb_worker_state(client);
    bool is_ipv4 = known && ends[0].is_ipv4 && ends[1].is_ipv4;
    size_t size = is_ipv4 ? sizeof(struct in_addr) : sizeof(struct in6_addr), n = 0;

    memcpy(header, "\r\n\r\n\0\r\nQUIT\n\x21\0\0\0", 16); /* version 2, PROXY */
    for (int i = 0; i < 2 && known; i++, n += size)
        memcpy(header + 16 + n, is_ipv4 ? (const void *)&ends[i].ipv4 : (const void *)&ends[i].ipv6,
            size);
    for (int i = 0; i < 2 && known; i++, n += sizeof(in_port_t))
        memcpy(header + 16 + n, &ends[i].port, sizeof(in_port_t));
    header[13] = !known ? 0x00 : is_ipv4 ? 0x11 : 0x21; /* unspecified, or a stream */
    n += own->stream->tlvs(client, header + 16 + n);
    header[14] = (uint8_t)(n >> 8);
    header[15] = (uint8_t)n;
    return 16 + n;
}

size_t proxy_header_make(fb_conn *client, enum proxy_header header, uint8_t room[PROXY_HEADER_MOST])
{
    struct end ends[2];
    bool known = read_ends(client, ends);

    return header == PROXY_HEADER_V2 ? make_v2(client, room, ends, known)
                                     : make_v1((char *)room, ends, known);
}

int proxy_header_set(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    enum proxy_header *header = value;
    uint64_t needs = FB_NEEDS_TLVS;

    *header = PROXY_HEADER_NONE;
    if (strcasecmp(args[0], "v2") == 0)
        *header = PROXY_HEADER_V2;
    else if (strcasecmp(args[0], "on") == 0)
        *header = PROXY_HEADER_V1;
    else if (strcasecmp(args[0], "off") != 0)
        return fb_conf_errorf(
            conf, "proxy_protocol", "expected on, off or v2, not \"%s\"", args[0]);
    for (uint32_t i = 1; i < n; i++)
        if (strcmp(args[i], "certificate") == 0)
            needs |= FB_NEEDS_CERTIFICATES;
        else if (strcmp(args[i], "version=2") == 0 && *header == PROXY_HEADER_V1)
            *header = PROXY_HEADER_V2;
        else if (strcmp(args[i], "version=2") != 0 &&
                 (strcmp(args[i], "version=1") != 0 || *header == PROXY_HEADER_V2))
            return fb_conf_errorf(conf, "proxy_protocol",
                "expected version=1, version=2 or certificate, not \"%s\"", args[i]);
    if ((needs & FB_NEEDS_CERTIFICATES) != 0 && *header == PROXY_HEADER_V1)
        return fb_conf_errorf(conf, "proxy_protocol", "version 1 has no certificates");
    return *header == PROXY_HEADER_V2 ? fb_conf_need(conf, needs) : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Beginnings of connections as headers of the PROXY protocol, cut at every byte; and headers
 * written from random numbers of the input: parsed they are equal. */
#include "fuzz/fuzz.h"

#include "net/proxy_protocol.h"
#include "support/random.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"

static void require(int holds)
{
    if (!holds)
        abort();
}

static bool is_within(fb_bytes part, fb_bytes whole)
{
    return part.n == 0 || (part.p >= whole.p && part.n <= whole.n - (size_t)(part.p - whole.p));
}

static void check_address(const struct address *address)
{
    char text[ADDRESS_TEXT];

    require(strlen(address_format(address, true, text)) < sizeof(text) && *text != '\0');
    require(address_equal(address, address));
}

/* Looks at each type, also within TLS. */
static void check_types(fb_bytes tlvs)
{
    for (unsigned type = 0; type < 256; type++) {
        fb_bytes value, inner, found;
        uint32_t verify;

        if (!proxy_protocol_find(tlvs, type, &value))
            continue;
        require(is_within(value, tlvs) && value.p[-3] == type);
        if (!proxy_protocol_ssl(value, &verify, &inner)) {
            require(value.n < 5);
            continue;
        }
        require(is_within(inner, value));
        if (proxy_protocol_find(inner, type, &found))
            require(is_within(found, inner));
    }
}

static void check_header(fb_bytes in, const struct proxy_protocol *header)
{
    require(header->length >= strlen("PROXY UNKNOWN\r\n") && header->length <= in.n);
    require(header->length <= PROXY_PROTOCOL_LONGEST);
    in.n = header->length;
    require(is_within(header->tlvs, in) && is_within(header->source_text, in) &&
            is_within(header->destination_text, in));
    if (header->has_addresses) {
        check_address(&header->source);
        check_address(&header->destination);
    }
    check_types(header->tlvs);
}

/* Parses the first n bytes at the end of mapped memory. */
static enum proxy_protocol_status parse_part(
    const uint8_t *data, size_t n, struct proxy_protocol *header)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);
    enum proxy_protocol_status status;

    require(copy != NULL);
    memcpy(copy, data, n);
    memset(header, 0xaa, sizeof(*header));
    status = proxy_protocol_parse((fb_bytes) { copy, n }, header);
    if (status == PROXY_PROTOCOL_WHOLE)
        check_header((fb_bytes) { copy, n }, header);
    free(copy);
    return status;
}

/* Parses the input at every byte: once whole or broken, more bytes change nothing. Long input is
 * cut at some of its bytes. */
static enum proxy_protocol_status parse_parts(
    const uint8_t *data, size_t size, struct proxy_protocol *header)
{
    enum proxy_protocol_status status = PROXY_PROTOCOL_MORE, before;
    size_t length = 0;

    for (size_t n = 0; n <= size; n += n < 512 || n >= size ? 1 : size - n < 997 ? size - n : 997) {
        before = status;
        status = parse_part(data, n, header);
        require(before == PROXY_PROTOCOL_MORE || status == before);
        require(before != PROXY_PROTOCOL_WHOLE || header->length == length);
        length = status == PROXY_PROTOCOL_WHOLE ? header->length : 0;
        require(status != PROXY_PROTOCOL_WHOLE || before != PROXY_PROTOCOL_MORE || length == n ||
                n >= 512);
    }
    return status;
}

/* ---- Headers that are written and parsed again ---- */

struct written {
    uint8_t bytes[16 + 216 + 4 * (3 + 300)];
    size_t n;
    uint32_t value_n[4]; /* lengths of the types 0xe0 to 0xe3 */
    struct proxy_protocol header;
};

static void put(struct written *written, const void *p, size_t n)
{
    memcpy(written->bytes + written->n, p, n);
    written->n += n;
}

static void make_address(uint64_t *state, sa_family_t family, struct address *out)
{
    *out = (struct address) { .any.sa_family = family };
    if (family == AF_INET) {
        out->length = sizeof(out->in);
        out->in.sin_addr.s_addr = (uint32_t)next_random(state);
    } else if (family == AF_INET6) {
        out->length = sizeof(out->in6);
        for (int i = 0; i < 16; i++) /* many zeros, which have many spellings */
            out->in6.sin6_addr.s6_addr[i] =
                random_below(state, 2) == 0 ? 0 : (uint8_t)next_random(state);
    } else {
        struct sockaddr_un un = { .sun_family = AF_UNIX };

        memset(un.sun_path, 'a' + (int)random_below(state, 26), random_below(state, 108));
        address_from(out, (const struct sockaddr *)&un);
    }
    address_set_port(out, (in_port_t)next_random(state));
}

static void write_line(struct written *written)
{
    const struct proxy_protocol *header = &written->header;
    char source[ADDRESS_TEXT], destination[ADDRESS_TEXT];
    int n;

    n = snprintf((char *)written->bytes, sizeof(written->bytes), "PROXY %s %s %s %u %u\r\n",
        header->source.any.sa_family == AF_INET ? "TCP4" : "TCP6",
        address_format(&header->source, false, source),
        address_format(&header->destination, false, destination), address_port(&header->source),
        address_port(&header->destination));
    require(n > 0 && n <= PROXY_PROTOCOL_LINE);
    written->n = (size_t)n;
}

static void write_host(struct written *written, const struct address *address)
{
    char path[108] = "";

    switch (address->any.sa_family) {
    case AF_INET:
        put(written, &address->in.sin_addr, 4);
        break;
    case AF_INET6:
        put(written, &address->in6.sin6_addr, 16);
        break;
    default:
        memcpy(path, address->un.sun_path, strnlen(address->un.sun_path, sizeof(path) - 1));
        put(written, path, sizeof(path));
    }
}

static void write_port(struct written *written, const struct address *address)
{
    in_port_t port = htons(address_port(address));

    if (address->any.sa_family != AF_UNIX)
        put(written, &port, sizeof(port));
}

static void write_types(struct written *written, uint64_t *state)
{
    for (unsigned i = 0; i < 4; i++) {
        uint32_t n = written->value_n[i] = random_below(state, 300);
        uint8_t head[] = { (uint8_t)(0xe0 + i), (uint8_t)(n >> 8), (uint8_t)n };

        put(written, head, sizeof(head));
        memset(written->bytes + written->n, (int)i, n);
        written->n += n;
    }
}

static void write_block(struct written *written, uint64_t *state)
{
    const struct proxy_protocol *header = &written->header;
    sa_family_t family = header->source.any.sa_family;
    uint8_t head[4] = { 0x21, family == AF_INET ? 0x11 : family == AF_INET6 ? 0x21 : 0x31 };

    put(written, SIGNATURE, 12);
    put(written, head, sizeof(head));
    write_host(written, &header->source);
    write_host(written, &header->destination);
    write_port(written, &header->source);
    write_port(written, &header->destination);
    write_types(written, state);
    written->bytes[14] = (uint8_t)((written->n - 16) >> 8);
    written->bytes[15] = (uint8_t)(written->n - 16);
}

static void compare(const struct written *written)
{
    struct proxy_protocol header;
    enum proxy_protocol_status status =
        proxy_protocol_parse((fb_bytes) { written->bytes, written->n }, &header);

    require(status == PROXY_PROTOCOL_WHOLE && header.has_addresses && header.length == written->n);
    require(address_equal(&header.source, &written->header.source));
    require(address_equal(&header.destination, &written->header.destination));
    for (unsigned i = 0; i < 4 && header.tlvs.n > 0; i++) {
        fb_bytes value;

        require(proxy_protocol_find(header.tlvs, 0xe0 + i, &value));
        require(value.n == written->value_n[i] && (value.n == 0 || value.p[value.n - 1] == i));
    }
}

/* Writes and parses headers of both versions. */
static void write_and_parse(uint64_t state)
{
    static const sa_family_t families[] = { AF_INET, AF_INET6, AF_UNIX };
    sa_family_t family = families[random_below(&state, 3)];
    struct written written = { .n = 0 };
    struct proxy_protocol header;

    make_address(&state, family, &written.header.source);
    make_address(&state, family, &written.header.destination);
    if (family != AF_UNIX) {
        write_line(&written);
        compare(&written);
        require(parse_parts(written.bytes, written.n, &header) == PROXY_PROTOCOL_WHOLE);
        written.n = 0;
    }
    write_block(&written, &state);
    compare(&written);
    require(parse_parts(written.bytes, written.n, &header) == PROXY_PROTOCOL_WHOLE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proxy_protocol header;
    uint64_t state = size;

    parse_parts(data, size, &header);
    for (size_t i = 0; i < size && i < 64; i++)
        state = state * 31 + data[i];
    write_and_parse(state);
    return 0;
}

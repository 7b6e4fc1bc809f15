/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of the PROXY protocol: whole headers, broken headers, and how early a broken one is
 * found. */
#include "net/proxy_protocol.h"
#include "support/test.h"

#include "base/compiler.h"

#include <stdlib.h>
#include <string.h>

#define TCP4 "PROXY TCP4 "
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define BYTES(text) text, sizeof(text) - 1

/* 203.0.113.9:4321 to 198.51.100.7:443 */
#define INET "\xcb\0\x71\x09\xc6\x33\x64\x07\x10\xe1\x01\xbb"
/* [2001:db8::9]:4321 to [2001:db8::7]:443 */
#define INET6                                                                                      \
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x09\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07\x10\xe1" \
    "\x01\xbb"

static const struct {
    const char *bytes;
    size_t n;
    const char *shown; /* addresses; "": none; NULL: the header is broken */
} cases[] = {
    { BYTES(TCP4 "203.0.113.9 198.51.100.7 4321 443\r\n"), "203.0.113.9:4321 198.51.100.7:443" },
    { BYTES(TCP4 "0.0.0.0 255.255.255.255 0 65535\r\n"), "0.0.0.0:0 255.255.255.255:65535" },
    { BYTES("PROXY TCP6 2001:db8::9 2001:DB8:0:0:0:0:0:7 1 2\r\n"),
        "[2001:db8::9]:1 [2001:db8::7]:2" },
    { BYTES("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"),
        "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535 "
        "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535" },
    { BYTES("PROXY TCP6 ::ffff:1.2.3.4 ::1 1 2\r\n"), "[::ffff:1.2.3.4]:1 [::1]:2" },
    { BYTES("PROXY UNKNOWN\r\n"), "" },
    { BYTES("PROXY UNKNOWN \r\n"), "" },
    { BYTES("PROXY UNKNOWN 1.2.3.4 what\rever\n 1 2\r\n"), "" },
    { BYTES("PROXY UNKNOWNS\r\n"), NULL },
    { BYTES("PROXY TCP4\r\n"), NULL },
    { BYTES(TCP4 "\r\n"), NULL },
    { BYTES("PROXY TCP5 203.0.113.9 198.51.100.7 4321 443\r\n"), NULL },
    { BYTES("PROXY UDP4 203.0.113.9 198.51.100.7 4321 443\r\n"), NULL },
    { BYTES("PROXY  TCP4 203.0.113.9 198.51.100.7 4321 443\r\n"), NULL },
    { BYTES("proxy TCP4 203.0.113.9 198.51.100.7 4321 443\r\n"), NULL },
    { BYTES(TCP4 "203.0.113.9  198.51.100.7 4321 443\r\n"), NULL },
    { BYTES(TCP4 "203.0.113.9 198.51.100.7 4321 443 \r\n"), NULL },
    { BYTES(TCP4 "203.0.113.9 198.51.100.7 4321 443 1\r\n"), NULL },
    { BYTES(TCP4 "203.0.113.9 198.51.100.7 4321 \r\n"), NULL },
    { BYTES(TCP4 "203.0.113.9 198.51.100.7 4321\r\n"), NULL },
    { BYTES(TCP4 "203.0.113.9 198.51.100.7 4321 0443\r\n"), NULL },
    { BYTES(TCP4 "203.0.113.9 198.51.100.7 4321 65536\r\n"), NULL },
    { BYTES(TCP4 "203.0.113.9 198.51.100.7 4321 -1\r\n"), NULL },
    { BYTES(TCP4 "203.0.113.9 198.51.100.7 4321 44a\r\n"), NULL },
    { BYTES(TCP4 "203.0.113.256 198.51.100.7 4321 443\r\n"), NULL },
    { BYTES(TCP4 "203.0.113 198.51.100.7 4321 443\r\n"), NULL },
    { BYTES(TCP4 "203.0.113.9\0 198.51.100.7 4321 443\r\n"), NULL },
    { BYTES(TCP4 "::1 ::2 4321 443\r\n"), "[::1]:4321 [::2]:443" },
    { BYTES("PROXY TCP6 203.0.113.9 ::2 4321 443\r\n"), "203.0.113.9:4321 [::2]:443" },
    { BYTES("PROXY TCP6 ::1%lo ::1 4321 443\r\n"), NULL },
    { BYTES("GET / HTTP/1.0\r\n\r\n"), NULL },
    { BYTES("\x16\x03\x01"), NULL },

    { BYTES(SIGNATURE "\x21\x11\0\x0c" INET), "203.0.113.9:4321 198.51.100.7:443" },
    { BYTES(SIGNATURE "\x21\x12\0\x0c" INET), "" },
    { BYTES(SIGNATURE "\x21\x21\0\x24" INET6), "[2001:db8::9]:4321 [2001:db8::7]:443" },
    { BYTES(SIGNATURE "\x21\x10\0\x0c" INET), "" },
    { BYTES(SIGNATURE "\x21\0\0\0"), "" },
    { BYTES(SIGNATURE "\x21\x01\0\x03"
                      "abc"),
        "" },
    { BYTES(SIGNATURE "\x20\0\0\0"), "" },
    { BYTES(SIGNATURE "\x20\x11\0\x0c" INET), "" },
    { BYTES(SIGNATURE "\x20\xff\0\x02"
                      "ab"),
        "" },
    { BYTES(SIGNATURE "\x21\x11\0\x0b" INET), NULL },
    { BYTES(SIGNATURE "\x21\x21\0\x23" INET6), NULL },
    { BYTES(SIGNATURE "\x21\x31\0\xd7"), NULL },
    { BYTES(SIGNATURE "\x21\x41\0\x0c" INET), NULL },
    { BYTES(SIGNATURE "\x21\x13\0\x0c" INET), NULL },
    { BYTES(SIGNATURE "\x22\x11\0\x0c" INET), NULL },
    { BYTES(SIGNATURE "\x11\x11\0\x0c" INET), NULL },
    { BYTES("\r\n\r\n\0\r\nQUIT\r"), NULL },
    /* checksums: right, of a different header, and of a different length */
    { BYTES(SIGNATURE "\x21\x11\0\x13" INET "\x03\0\x04\xf8\x63\x1c\x9b"),
        "203.0.113.9:4321 198.51.100.7:443" },
    { BYTES(SIGNATURE "\x21\x12\0\x13" INET "\x03\0\x04\xf8\x63\x1c\x9b"), NULL },
    { BYTES(SIGNATURE "\x21\x11\0\x12" INET "\x03\0\x03\xf8\x63\x1c"), NULL },
};

/* Parses a copy, with an end known to a sanitizer. */
static enum proxy_protocol_status parse(const char *bytes, size_t n, struct proxy_protocol *out)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);
    enum proxy_protocol_status status;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, n);
    status = proxy_protocol_parse((fb_bytes) { copy, n }, out);
    free(copy);
    return status;
}

static const char *show(const struct proxy_protocol *header, char text[2 * ADDRESS_TEXT])
{
    char source[ADDRESS_TEXT], destination[ADDRESS_TEXT];

    *text = '\0';
    if (header->has_addresses)
        snprintf(text, 2 * ADDRESS_TEXT, "%s %s", address_format(&header->source, true, source),
            address_format(&header->destination, true, destination));
    return text;
}

START_TEST(a_header_is_whole_or_broken)
{
    struct proxy_protocol header;
    enum proxy_protocol_status status = parse(cases[_i].bytes, cases[_i].n, &header);
    char text[2 * ADDRESS_TEXT];

    if (cases[_i].shown == NULL) {
        ck_assert_int_eq(status, PROXY_PROTOCOL_BROKEN);
        return;
    }
    ck_assert_int_eq(status, PROXY_PROTOCOL_WHOLE);
    ck_assert_uint_eq(header.length, cases[_i].n);
    ck_assert_str_eq(show(&header, text), cases[_i].shown);
}
END_TEST

START_TEST(each_part_of_a_header_waits_for_more)
{
    struct proxy_protocol header;

    for (size_t n = 0; cases[_i].shown != NULL && n < cases[_i].n; n++)
        ck_assert_int_eq(parse(cases[_i].bytes, n, &header), PROXY_PROTOCOL_MORE);
}
END_TEST

START_TEST(what_follows_a_header_is_left)
{
    char bytes[512] = { 0 };
    struct proxy_protocol header;

    if (cases[_i].shown == NULL)
        return;
    memcpy(bytes, cases[_i].bytes, cases[_i].n);
    memcpy(bytes + cases[_i].n, "PROXY \r\n", 8);
    ck_assert_int_eq(parse(bytes, cases[_i].n + 8, &header), PROXY_PROTOCOL_WHOLE);
    ck_assert_uint_eq(header.length, cases[_i].n);
}
END_TEST

START_TEST(a_line_has_107_bytes_at_most)
{
    char line[PROXY_PROTOCOL_LINE + 2];
    struct proxy_protocol header;

    memset(line, 'x', sizeof(line));
    memcpy(line, BYTES("PROXY UNKNOWN "));
    ck_assert_int_eq(parse(line, PROXY_PROTOCOL_LINE - 1, &header), PROXY_PROTOCOL_MORE);
    ck_assert_int_eq(parse(line, PROXY_PROTOCOL_LINE, &header), PROXY_PROTOCOL_BROKEN);
    memcpy(line + PROXY_PROTOCOL_LINE - 1, "\r\n", 2);
    ck_assert_int_eq(parse(line, PROXY_PROTOCOL_LINE + 1, &header), PROXY_PROTOCOL_BROKEN);
    memcpy(line + PROXY_PROTOCOL_LINE - 2, "\r\n", 2);
    ck_assert_int_eq(parse(line, PROXY_PROTOCOL_LINE, &header), PROXY_PROTOCOL_WHOLE);
    ck_assert_uint_eq(header.length, PROXY_PROTOCOL_LINE);
}
END_TEST

START_TEST(a_wrong_byte_is_known_at_once)
{
    static const struct {
        const char *bytes;
        size_t n;
    } wrong[] = {
        { BYTES("G") },
        { BYTES("PX") },
        { BYTES("PROXY X") },
        { BYTES("PROXY TCP5") },
        { BYTES("PROXY TCP4 203.0.113.9\n") },
        { BYTES("\r\n\r\n\r") },
        { BYTES(SIGNATURE "\x22") },
        { BYTES(SIGNATURE "\x31") },
        { BYTES(SIGNATURE "\x21\x40") },
        { BYTES(SIGNATURE "\x21\x03") },
        { BYTES(SIGNATURE "\x21\x11\0\x0b") },
    };
    struct proxy_protocol header;

    for (size_t i = 0; i < countof(wrong); i++) {
        ck_assert_int_eq(parse(wrong[i].bytes, wrong[i].n, &header), PROXY_PROTOCOL_BROKEN);
        ck_assert_int_eq(parse(wrong[i].bytes, wrong[i].n - 1, &header), PROXY_PROTOCOL_MORE);
    }
}
END_TEST

START_TEST(unix_sockets_have_paths)
{
    char bytes[16 + 216] = SIGNATURE "\x21\x31\0\xd8", text[2 * ADDRESS_TEXT];
    struct proxy_protocol header;

    ck_assert_int_eq(parse(bytes, sizeof(bytes), &header), PROXY_PROTOCOL_WHOLE);
    ck_assert_str_eq(show(&header, text), "unix: unix:");
    strcpy(bytes + 16, "/run/a");
    memset(bytes + 16 + 108, 'b', 108); /* fills its place */
    ck_assert_int_eq(parse(bytes, sizeof(bytes), &header), PROXY_PROTOCOL_WHOLE);
    ck_assert_int_eq(strncmp(show(&header, text), "unix:/run/a unix:bbb", 20), 0);
    ck_assert_uint_eq(strlen(header.destination.un.sun_path), 107);
    bytes[15]--;
    ck_assert_int_eq(parse(bytes, sizeof(bytes), &header), PROXY_PROTOCOL_BROKEN);
}
END_TEST

START_TEST(a_line_spells_its_hosts)
{
    static const char line[] = "PROXY TCP6 2001:0DB8::9 ::FFFF:1.2.3.4 1 2\r\n";
    struct proxy_protocol header;

    ck_assert_int_eq(
        proxy_protocol_parse((fb_bytes) { (const uint8_t *)line, sizeof(line) - 1 }, &header),
        PROXY_PROTOCOL_WHOLE);
    ck_assert_mem_eq(header.source_text.p, "2001:0DB8::9", header.source_text.n);
    ck_assert_mem_eq(header.destination_text.p, "::FFFF:1.2.3.4", header.destination_text.n);
    ck_assert_uint_eq(header.source_text.n, 12);
    ck_assert_uint_eq(header.destination_text.n, 14);
}
END_TEST

static bool has(fb_bytes tlvs, unsigned type, const char *expected)
{
    fb_bytes value;

    return proxy_protocol_find(tlvs, type, &value) && value.n == strlen(expected) &&
           memcmp(value.p, expected, value.n) == 0;
}

START_TEST(types_follow_the_addresses)
{
    static const char bytes[] =
        SIGNATURE "\x21\x11\0\x3c" INET "\x01\0\x02h2\x04\0\0"
                  "\x02\0\x06\x61.test\x20\0\x15\x01\0\0\0\x02\x21\0\x07TLSv1.3"
                  "\x23\0\x03\x61\x65s\x05\0\x01z\x01\0\x01";
    struct proxy_protocol header;
    fb_bytes value, ssl;
    uint32_t verify;

    ck_assert_uint_eq(sizeof(bytes) - 1, 16 + 0x3c);
    ck_assert_int_eq(
        proxy_protocol_parse((fb_bytes) { (const uint8_t *)bytes, sizeof(bytes) - 1 }, &header),
        PROXY_PROTOCOL_WHOLE);
    ck_assert(has(header.tlvs, PROXY_PROTOCOL_ALPN, "h2"));
    ck_assert(has(header.tlvs, PROXY_PROTOCOL_AUTHORITY, "a.test"));
    ck_assert(has(header.tlvs, 0x04, ""));
    ck_assert(has(header.tlvs, PROXY_PROTOCOL_UNIQUE_ID, "z"));
    ck_assert(!proxy_protocol_find(header.tlvs, PROXY_PROTOCOL_NETNS, &value));
    ck_assert(proxy_protocol_find(header.tlvs, PROXY_PROTOCOL_SSL, &value));
    ck_assert(proxy_protocol_ssl(value, &verify, &ssl));
    ck_assert_uint_eq(verify, 2);
    ck_assert(has(ssl, PROXY_PROTOCOL_SSL_VERSION, "TLSv1.3"));
    ck_assert(has(ssl, PROXY_PROTOCOL_SSL_CIPHER, "aes"));
    ck_assert(!proxy_protocol_find(ssl, PROXY_PROTOCOL_SSL_CN, &value));
    ck_assert(!proxy_protocol_ssl((fb_bytes) { value.p, 4 }, &verify, &ssl));
}
END_TEST

START_TEST(a_header_may_have_65551_bytes)
{
    char *bytes = calloc(1, PROXY_PROTOCOL_LONGEST);
    struct proxy_protocol header;

    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, BYTES(SIGNATURE "\x21\x11\xff\xff" INET));
    ck_assert_int_eq(parse(bytes, PROXY_PROTOCOL_LONGEST - 1, &header), PROXY_PROTOCOL_MORE);
    ck_assert_int_eq(parse(bytes, PROXY_PROTOCOL_LONGEST, &header), PROXY_PROTOCOL_WHOLE);
    ck_assert_uint_eq(header.length, PROXY_PROTOCOL_LONGEST);
    ck_assert_uint_eq(header.tlvs.n, 65535 - 12);
    free(bytes);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_header_is_whole_or_broken, 0, countof(cases));
    tcase_add_loop_test(tcase, each_part_of_a_header_waits_for_more, 0, countof(cases));
    tcase_add_loop_test(tcase, what_follows_a_header_is_left, 0, countof(cases));
    tcase_add_test(tcase, a_line_has_107_bytes_at_most);
    tcase_add_test(tcase, a_wrong_byte_is_known_at_once);
    tcase_add_test(tcase, a_line_spells_its_hosts);
    tcase_add_test(tcase, unix_sockets_have_paths);
    tcase_add_test(tcase, types_follow_the_addresses);
    tcase_add_test(tcase, a_header_may_have_65551_bytes);
}

TEST_MAIN("proxy_protocol", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses: parsing, writing, comparison and sorting, and blocks of addresses. */
#include "net/address_parse.h"

#include "base/compiler.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define PATH_107                                                                                   \
    "/23456789012345678901234567890123456789012345678901234"                                       \
    "56789012345678901234567890123456789012345678901234567"
_Static_assert(sizeof(PATH_107) == 108, "the longest path");

static struct address parsed(const char *text)
{
    struct address address;
    const char *wrong = address_parse(text, 0, &address);

    ck_assert_msg(wrong == NULL, "%s: %s", text, wrong);
    return address;
}

static const struct {
    const char *text, *wrong, *shown, *bare;
} parse_cases[] = {
    { "1.2.3.4", NULL, "1.2.3.4:7", "1.2.3.4" },
    { "1.2.3.4:80", NULL, "1.2.3.4:80", "1.2.3.4" },
    { "255.255.255.255:65535", NULL, "255.255.255.255:65535", "255.255.255.255" },
    { "[::1]", NULL, "[::1]:7", "::1" },
    { "[::1]:80", NULL, "[::1]:80", "::1" },
    { "[2001:DB8:0:0::1]:080", NULL, "[2001:db8::1]:80", "2001:db8::1" },
    { "[::ffff:1.2.3.4]:1", NULL, "[::ffff:1.2.3.4]:1", "::ffff:1.2.3.4" },
    { "unix:/run/x", NULL, "unix:/run/x", "unix:/run/x" },
    { "unix:" PATH_107, NULL, "unix:" PATH_107, "unix:" PATH_107 },
    { "unix:" PATH_107 "8", "too long path of the unix domain socket, at most 107 bytes", NULL,
        NULL },
    { "unix:", "no path in the unix domain socket", NULL, NULL },
    { "", "invalid IPv4 address", NULL, NULL },
    { "localhost:80", "invalid IPv4 address", NULL, NULL },
    { "*:80", "invalid IPv4 address", NULL, NULL },
    { "80", "invalid IPv4 address", NULL, NULL },
    { "1.2.3:80", "invalid IPv4 address", NULL, NULL },
    { "1.2.3.256", "invalid IPv4 address", NULL, NULL },
    { "1.2.3.4:0", "port out of range 1 to 65535", NULL, NULL },
    { "1.2.3.4:65536", "port out of range 1 to 65535", NULL, NULL },
    { "1.2.3.4:", "no port", NULL, NULL },
    { "1.2.3.4:-1", "invalid port", NULL, NULL },
    { "1.2.3.4:80-90", "invalid port", NULL, NULL },
    { "1.2.3.4:http", "invalid port", NULL, NULL },
    { "::1", "more than one \":\", an IPv6 address needs brackets", NULL, NULL },
    { "::1:80", "more than one \":\", an IPv6 address needs brackets", NULL, NULL },
    { "[::1", "\"]\" is missing", NULL, NULL },
    { "[::1]80", "nothing but a port may follow \"]\"", NULL, NULL },
    { "[1.2.3.4]:80", "invalid IPv6 address", NULL, NULL },
    { "[]:80", "invalid IPv6 address", NULL, NULL },
};

START_TEST(parse)
{
    const char *text = parse_cases[_i].text, *expected = parse_cases[_i].wrong;
    struct address address = { .length = 0 };
    char shown[ADDRESS_TEXT];
    const char *wrong = address_parse(text, 7, &address);

    if (expected != NULL) {
        ck_assert_pstr_eq(wrong, expected);
        ck_assert_uint_eq(address.length, 0);
        return;
    }
    ck_assert_msg(wrong == NULL, "%s: %s", text, wrong);
    ck_assert_ptr_eq(address_format(&address, true, shown), shown);
    ck_assert_str_eq(shown, parse_cases[_i].shown);
    ck_assert_str_eq(address_format(&address, false, shown), parse_cases[_i].bare);
}
END_TEST

static const struct {
    const char *text, *wrong, *shown;
} host_cases[] = {
    { "1.2.3.4", NULL, "1.2.3.4:7" },
    { "1.2.3.4:80", NULL, "1.2.3.4:80" },
    { "[::1]", NULL, "[::1]:7" },
    { "[::1]:80", NULL, "[::1]:80" },
    { "unix:/run/x", NULL, "unix:/run/x" },
    { "unix:", "no path in the unix domain socket", NULL },
    { "", "no host", NULL },
    { ":80", "no host", NULL },
    { "80", "invalid IPv4 address", NULL },
    { "*", "expected a host", NULL },
    { "*:80", "expected a host", NULL },
    { "1.2.3.4:", "no port", NULL },
    { "1.2.3.4:80-90", "invalid port", NULL },
    { "1.2.3.256", "invalid IPv4 address", NULL },
    { "a b", "invalid host", NULL },
    { "::1", "more than one \":\", an IPv6 address needs brackets", NULL },
};

START_TEST(parse_host)
{
    const char *expected = host_cases[_i].wrong;
    struct address address = { .length = 0 };
    char shown[ADDRESS_TEXT];
    const char *wrong = address_parse_host(host_cases[_i].text, 7, &address);

    if (expected != NULL) {
        ck_assert_pstr_eq(wrong, expected);
        return;
    }
    ck_assert_msg(wrong == NULL, "%s: %s", host_cases[_i].text, wrong);
    ck_assert_str_eq(address_format(&address, true, shown), host_cases[_i].shown);
}
END_TEST

START_TEST(parse_host_by_name)
{
    struct address address = { .length = 0 };

    ck_assert_ptr_null(address_parse_host("localhost", 7, &address));
    ck_assert_uint_eq(address_port(&address), 7);
    ck_assert_ptr_null(address_parse_host("localhost:80", 7, &address));
    ck_assert_uint_eq(address_port(&address), 80);
    ck_assert(address.any.sa_family == AF_INET || address.any.sa_family == AF_INET6);
}
END_TEST

static const struct {
    const char *a, *b;
    bool equal;
} equal_cases[] = {
    { "1.2.3.4:80", "1.2.3.4:80", true },
    { "1.2.3.4:80", "1.2.3.4:81", false },
    { "1.2.3.4:80", "1.2.3.5:80", false },
    { "[::1]:80", "[0:0::1]:80", true },
    { "[::1]:80", "[::1]:81", false },
    { "[::1]:80", "[::2]:80", false },
    { "0.0.0.0:80", "[::]:80", false },
    { "[::ffff:1.2.3.4]:80", "1.2.3.4:80", false },
    { "unix:/a", "unix:/a", true },
    { "unix:/a", "unix:/b", false },
    { "unix:/a", "unix:/aa", false },
    { "unix:/a", "1.2.3.4:80", false },
};

START_TEST(equal)
{
    struct address a = parsed(equal_cases[_i].a), b = parsed(equal_cases[_i].b);

    ck_assert(address_equal(&a, &b) == equal_cases[_i].equal);
    ck_assert(address_equal(&b, &a) == equal_cases[_i].equal);
}
END_TEST

/* Addresses are sorted: lesser before greater, and equal addresses stay together. */
START_TEST(compare)
{
    struct address a = parsed(equal_cases[_i].a), b = parsed(equal_cases[_i].b);
    int order = address_compare(&a, &b);

    ck_assert((order == 0) == equal_cases[_i].equal);
    ck_assert((order < 0) == (address_compare(&b, &a) > 0));
    for (size_t i = 0; i < countof(equal_cases); i++) {
        struct address c = parsed(equal_cases[i].b);

        if (order <= 0 && address_compare(&b, &c) <= 0)
            ck_assert_int_le(address_compare(&a, &c), 0);
    }
}
END_TEST

START_TEST(ports)
{
    struct address in = parsed("1.2.3.4:80"), in6 = parsed("[::1]:443"), un = parsed("unix:/x");
    char text[ADDRESS_TEXT];

    ck_assert_uint_eq(address_port(&in), 80);
    ck_assert_uint_eq(address_port(&in6), 443);
    ck_assert_uint_eq(address_port(&un), 0);
    address_set_port(&in, 8080);
    address_set_port(&in6, 8443);
    address_set_port(&un, 1);
    ck_assert_uint_eq(ntohs(in.in.sin_port), 8080);
    ck_assert_uint_eq(ntohs(in6.in6.sin6_port), 8443);
    ck_assert_str_eq(address_format(&un, true, text), "unix:/x");
}
END_TEST

START_TEST(wildcards)
{
    struct address in = parsed("0.0.0.0:80"), in6 = parsed("[::]:80"), un = parsed("unix:/x");
    struct address one = parsed("0.0.0.1:80"), six = parsed("[::1]:80");

    ck_assert(address_is_wildcard(&in));
    ck_assert(address_is_wildcard(&in6));
    ck_assert(!address_is_wildcard(&un));
    ck_assert(!address_is_wildcard(&one));
    ck_assert(!address_is_wildcard(&six));
}
END_TEST

START_TEST(unix_names_as_the_kernel_gives_them)
{
    struct address unnamed = { .length = sizeof(sa_family_t), .un.sun_family = AF_UNIX };
    struct address hidden = unnamed, other, full = unnamed, padded = parsed("unix:/x");
    char text[ADDRESS_TEXT];

    ck_assert_str_eq(address_format(&unnamed, true, text), "unix:");

    hidden.length += 3;
    memcpy(hidden.un.sun_path, "\0ab", 3);
    other = hidden;
    ck_assert_str_eq(address_format(&hidden, true, text), "unix:");
    ck_assert(address_equal(&hidden, &other));
    ck_assert(!address_equal(&hidden, &unnamed));
    other.un.sun_path[2] = 'c';
    ck_assert(!address_equal(&hidden, &other));

    /* a path of all 108 bytes has no NUL */
    full.length = sizeof(full.un);
    memset(full.un.sun_path, 'x', sizeof(full.un.sun_path));
    ck_assert_uint_eq(strlen(address_format(&full, true, text)), 5 + 108);

    padded.length = sizeof(padded.un);
    other = parsed("unix:/x");
    ck_assert(address_equal(&padded, &other));
}
END_TEST

static const struct {
    const char *block, *address;
    bool matches;
} match_cases[] = {
    { "192.168.0.0/16", "192.168.255.1:80", true },
    { "192.168.0.0/16", "192.169.0.1:80", false },
    { "192.168.7.9/16", "192.168.1.1:80", true },
    { "10.0.0.0/9", "10.127.0.1:80", true },
    { "10.0.0.0/9", "10.128.0.1:80", false },
    { "0.0.0.0/0", "255.1.2.3:80", true },
    { "0.0.0.0/0", "[::1]:80", false },
    { "1.2.3.4", "1.2.3.4:80", true },
    { "1.2.3.4/32", "1.2.3.5:80", false },
    { "1.2.3.4", "[::ffff:1.2.3.4]:80", true },
    { "1.2.3.4", "[::ffff:1.2.3.5]:80", false },
    { "::ffff:1.2.3.0/120", "1.2.3.200:80", true },
    { "::ffff:1.2.3.0/120", "[::ffff:1.2.3.200]:80", true },
    { "::ffff:1.2.3.0/120", "1.2.4.1:80", false },
    { "::ffff:0:0/96", "9.9.9.9:80", true },
    { "2001:db8::/33", "[2001:db8:7fff::1]:80", true },
    { "2001:db8::/33", "[2001:db8:8000::1]:80", false },
    { "::1", "[::1]:80", true },
    { "::1", "[::2]:80", false },
    { "::/0", "[2001:db8::]:80", true },
    { "::/0", "1.2.3.4:80", false },
    { "::/0", "[::ffff:1.2.3.4]:80", false },
    { "unix:", "unix:/x", true },
    { "unix:", "1.2.3.4:80", false },
    { "1.2.3.4", "unix:/x", false },
};

START_TEST(block_matches)
{
    struct address address = parsed(match_cases[_i].address);
    struct address_block block;
    const char *wrong = address_block_parse(match_cases[_i].block, &block);

    ck_assert_msg(wrong == NULL, "%s: %s", match_cases[_i].block, wrong);
    ck_assert_msg(address_block_matches(&block, &address.any) == match_cases[_i].matches, "%s %s",
        match_cases[_i].block, match_cases[_i].address);
}
END_TEST

static const struct {
    const char *text, *wrong;
} bad_blocks[] = {
    { "", "invalid address" },
    { "/8", "invalid address" },
    { "localhost", "invalid address" },
    { "1.2.3", "invalid address" },
    { "[::1]", "invalid address" },
    { "unix:/x", "invalid address" },
    { "1111:1111:1111:1111:1111:1111:1111:1111:1111:1111", "invalid address" },
    { "1.2.3.4/", "invalid prefix length" },
    { "1.2.3.4/x", "invalid prefix length" },
    { "1.2.3.4/-1", "invalid prefix length" },
    { "1.2.3.4/8/8", "invalid prefix length" },
    { "1.2.3.4/33", "prefix length out of range 0 to 32" },
    { "::1/129", "prefix length out of range 0 to 128" },
};

START_TEST(bad_block)
{
    struct address_block block;

    ck_assert_pstr_eq(address_block_parse(bad_blocks[_i].text, &block), bad_blocks[_i].wrong);
}
END_TEST

static const struct {
    const char *text, *block; /* NULL: not one */
    unsigned bits;
    bool low;
} cidr_cases[] = {
    { "192.168.1.1", "192.168.1.1", 32, false },
    { "192.168.1.0/24", "192.168.1.0", 24, false },
    { "192.168.1.1/24", "192.168.1.0", 24, true },
    { "10.255.0.0/9", "10.128.0.0", 9, true },
    { "10.0.0.1/0", "0.0.0.0", 0, true },
    { "10.0.0.0/08", "10.0.0.0", 8, false },
    { "2001:db8::1/32", "2001:db8::", 32, true },
    { "2001:db8:ffff::/33", "2001:db8:8000::", 33, true },
    { "::ffff:10.0.0.1", "::ffff:10.0.0.1", 128, false },
    { "::ffff:10.0.0.0/104", "::ffff:10.0.0.0", 104, false },
    { "unix:", NULL, 0, false },
    { "localhost", NULL, 0, false },
    { "[::1]", NULL, 0, false },
    { "10.0.0.0/+8", NULL, 0, false },
    { "10.0.0.0/33", NULL, 0, false },
};

START_TEST(cidr)
{
    struct address_block block;
    bool low;
    const char *wrong = address_cidr_parse(cidr_cases[_i].text, &block, &low);
    char text[ADDRESS_TEXT];

    ck_assert_int_eq(wrong == NULL, cidr_cases[_i].block != NULL);
    if (wrong != NULL)
        return;
    ck_assert_str_eq(address_format(&block.address, false, text), cidr_cases[_i].block);
    ck_assert_uint_eq(block.bits, cidr_cases[_i].bits);
    ck_assert_int_eq(low, cidr_cases[_i].low);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, parse, 0, countof(parse_cases));
    tcase_add_loop_test(tcase, parse_host, 0, countof(host_cases));
    tcase_add_test(tcase, parse_host_by_name);
    tcase_add_loop_test(tcase, equal, 0, countof(equal_cases));
    tcase_add_loop_test(tcase, compare, 0, countof(equal_cases));
    tcase_add_test(tcase, ports);
    tcase_add_test(tcase, wildcards);
    tcase_add_test(tcase, unix_names_as_the_kernel_gives_them);
    tcase_add_loop_test(tcase, block_matches, 0, countof(match_cases));
    tcase_add_loop_test(tcase, bad_block, 0, countof(bad_blocks));
    tcase_add_loop_test(tcase, cidr, 0, countof(cidr_cases));
}

TEST_MAIN("address", add_tests)

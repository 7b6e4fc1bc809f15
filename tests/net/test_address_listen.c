/* SPDX-License-Identifier: BSD-2-Clause */
/* The argument of `listen`: addresses, ports, ranges, names, and network interfaces. */
#include "net/address_parse.h"

#include "base/compiler.h"
#include "support/test.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define PATH_107                                                                                   \
    "/23456789012345678901234567890123456789012345678901234"                                       \
    "56789012345678901234567890123456789012345678901234567"
_Static_assert(sizeof(PATH_107) == 108, "the longest path");

static const struct {
    const char *text, *wrong, *shown;
    unsigned last;
} listen_cases[] = {
    { "80", NULL, "0.0.0.0:80", 80 },
    { "1", NULL, "0.0.0.0:1", 1 },
    { "65535", NULL, "0.0.0.0:65535", 65535 },
    { "*:80", NULL, "0.0.0.0:80", 80 },
    { "127.0.0.1:80", NULL, "127.0.0.1:80", 80 },
    { "[::]:80", NULL, "[::]:80", 80 },
    { "[::1]:80", NULL, "[::1]:80", 80 },
    { "unix:/run/x", NULL, "unix:/run/x", 0 },
    { "UNIX:x", NULL, "unix:x", 0 },
    { "8000-8010", NULL, "0.0.0.0:8000", 8010 },
    { "8000-8000", NULL, "0.0.0.0:8000", 8000 },
    { "*:8000-8010", NULL, "0.0.0.0:8000", 8010 },
    { "127.0.0.1:8000-8010", NULL, "127.0.0.1:8000", 8010 },
    { "[::1]:1-65535", NULL, "[::1]:1", 65535 },
    { "", "no port", NULL, 0 },
    { "*", "no port", NULL, 0 },
    { "*:", "no port", NULL, 0 },
    { "127.0.0.1", "no port", NULL, 0 },
    { "[::1]", "no port", NULL, 0 },
    { "localhost", "no port", NULL, 0 },
    { ":80", "no host", NULL, 0 },
    { "0", "port out of range 1 to 65535", NULL, 0 },
    { "*:0", "port out of range 1 to 65535", NULL, 0 },
    { "65536", "port out of range 1 to 65535", NULL, 0 },
    { "99999999999999999999", "port out of range 1 to 65535", NULL, 0 },
    { "0-10", "port out of range 1 to 65535", NULL, 0 },
    { "8000-65536", "port out of range 1 to 65535", NULL, 0 },
    { "8010-8000", "the range of ports runs backwards", NULL, 0 },
    { "[::1]:8010-8000", "the range of ports runs backwards", NULL, 0 },
    { "8000-", "no port", NULL, 0 },
    { "*:-8000", "no port", NULL, 0 },
    { "8000--8010", "invalid port", NULL, 0 },
    { "8000-8010-8020", "invalid port", NULL, 0 },
    { "80x", "invalid port", NULL, 0 },
    { "80 ", "invalid port", NULL, 0 },
    { "-80", "no port", NULL, 0 },
    { "*:+80", "invalid port", NULL, 0 },
    { "127.0.0.1:http", "invalid port", NULL, 0 },
    { "::1:80", "more than one \":\", an IPv6 address needs brackets", NULL, 0 },
    { "1:2:3", "more than one \":\", an IPv6 address needs brackets", NULL, 0 },
    { "[::1:80", "\"]\" is missing", NULL, 0 },
    { "[::1]:80]", "invalid port", NULL, 0 },
    { "[::1]x:80", "nothing but a port may follow \"]\"", NULL, 0 },
    { "[g]:80", "invalid IPv6 address", NULL, 0 },
    { "[fe80::1]:80", "a link-local address needs a network interface, as in [fe80::1%eth0]:80",
        NULL, 0 },
    { "[fe80::1%]:80", "there is no such network interface", NULL, 0 },
    { "[fe80::1%none]:80", "there is no such network interface", NULL, 0 },
    { "[fe80::1%0]:80", "there is no such network interface", NULL, 0 },
    { "[fe80::1%4294967296]:80", "there is no such network interface", NULL, 0 },
    { "[::1%1]:80", "only a link-local address has a network interface behind \"%\"", NULL, 0 },
    { "[::%1]:80", "only a link-local address has a network interface behind \"%\"", NULL, 0 },
    { "[g%1]:80", "invalid IPv6 address", NULL, 0 },
    { "127.1:80", "invalid IPv4 address", NULL, 0 },
    { "127.0.0.256:80", "invalid IPv4 address", NULL, 0 },
    { "a b:80", "invalid host", NULL, 0 },
    { "http//x:80", "invalid host", NULL, 0 },
    { "unix:", "no path in the unix domain socket", NULL, 0 },
    { "unix:" PATH_107 "8", "too long path of the unix domain socket, at most 107 bytes", NULL, 0 },
};

START_TEST(parse_listen)
{
    const char *text = listen_cases[_i].text, *expected = listen_cases[_i].wrong;
    struct address all[4];
    char shown[ADDRESS_TEXT];
    unsigned n = 99;
    in_port_t last = 99;
    const char *wrong = address_parse_listen(text, all, countof(all), &n, &last);

    if (expected != NULL) {
        ck_assert_pstr_eq(wrong, expected);
        ck_assert_uint_eq(n, 0);
        return;
    }
    ck_assert_msg(wrong == NULL, "%s: %s", text, wrong);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(address_format(&all[0], true, shown), listen_cases[_i].shown);
    ck_assert_uint_eq(last, listen_cases[_i].last);
}
END_TEST

/* The first interface is the loopback's, under any name. */
START_TEST(a_link_local_address_is_one_of_an_interface)
{
    char interface[IF_NAMESIZE], text[64], shown[ADDRESS_TEXT], expected[64];
    struct address by_name, by_number, other;
    unsigned n = 0;
    in_port_t last = 0;

    ck_assert_ptr_nonnull(if_indextoname(1, interface));
    snprintf(text, sizeof(text), "[fe80::1%%%s]:80-81", interface);
    ck_assert_ptr_null(address_parse_listen(text, &by_name, 1, &n, &last));
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(last, 81);
    ck_assert_uint_eq(by_name.in6.sin6_scope_id, 1);
    ck_assert_ptr_null(address_parse_listen("[fe80::1%1]:80", &by_number, 1, &n, &last));
    ck_assert(address_equal(&by_name, &by_number));

    snprintf(expected, sizeof(expected), "[fe80::1%%%s]:80", interface);
    ck_assert_str_eq(address_format_zone(&by_name, shown), expected);
    ck_assert_str_eq(address_format(&by_name, true, shown), "[fe80::1]:80");
    other = by_name;
    other.in6.sin6_scope_id = 4000000000; /* an interface that has gone */
    ck_assert(!address_equal(&by_name, &other));
    ck_assert_str_eq(address_format_zone(&other, shown), "[fe80::1%4000000000]:80");
    ck_assert_ptr_null(address_parse("1.2.3.4:80", 0, &other));
    ck_assert_str_eq(address_format_zone(&other, shown), "1.2.3.4:80");
}
END_TEST

START_TEST(a_name_is_resolved_to_all_its_addresses_once)
{
    struct address all[8];
    unsigned n;
    in_port_t last;
    const char *wrong = address_parse_listen("localhost:80-81", all, countof(all), &n, &last);

    ck_assert_msg(wrong == NULL, "localhost: %s", wrong);
    ck_assert_uint_ge(n, 1);
    ck_assert_uint_eq(last, 81);
    for (unsigned i = 0; i < n; i++) {
        struct address_block in, in6;

        ck_assert_uint_eq(address_port(&all[i]), 80);
        ck_assert_ptr_null(address_block_parse("127.0.0.0/8", &in));
        ck_assert_ptr_null(address_block_parse("::1", &in6));
        ck_assert(
            address_block_matches(&in, &all[i].any) || address_block_matches(&in6, &all[i].any));
        for (unsigned j = 0; j < i; j++)
            ck_assert(!address_equal(&all[i], &all[j]));
    }

    ck_assert_ptr_null(address_parse_listen("localhost:80", all, 1, &n, &last));
    ck_assert_uint_eq(n, 1);
}
END_TEST

START_TEST(an_unknown_name_is_an_error)
{
    struct address all[2];
    unsigned n;
    in_port_t last;

    /* Without a name server the message differs from "host not found". */
    ck_assert_ptr_nonnull(
        address_parse_listen("no-such-host.invalid:80", all, countof(all), &n, &last));
    ck_assert_uint_eq(n, 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, parse_listen, 0, countof(listen_cases));
    tcase_add_test(tcase, a_link_local_address_is_one_of_an_interface);
    tcase_add_test(tcase, a_name_is_resolved_to_all_its_addresses_once);
    tcase_add_test(tcase, an_unknown_name_is_an_error);
}

TEST_MAIN("address_listen", add_tests)

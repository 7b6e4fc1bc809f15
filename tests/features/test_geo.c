/* SPDX-License-Identifier: BSD-2-Clause */
/* geo and split_clients, as a session has them. */
#include "base/compiler.h"
#include "features/defined.h"
#include "features/geo/geo_tree.h"
#include "features/split_clients/split_clients.h"
#include "support/test.h"

#include <string.h>

static void expect(const char *entries, const char *address, const char *value)
{
    const char *const rows[] = { "[$g]", value, NULL };
    char stream[1024];

    snprintf(stream, sizeof(stream), "geo $a $g { %s } server { set $a \"%s\"; ", entries, address);
    defined_expect(stream, rows, "");
}

START_TEST(the_smallest_network_counts)
{
    static const char *const rows[][2] = { { "1.2.3.4", "[a$k]" }, { "10.1.1.1", "[C]" },
        { "10.1.2.1", "[B]" }, { "10.2.1.1", "[A]" }, { "::ffff:10.1.1.1", "[C]" },
        { "010.1.1.1", "[C]" }, { "::1", "[six]" }, { "2001:DB8::5", "[db]" }, { "::2", "[D]" },
        { "9.9.9.9", "[D]" }, { "", "[all]" }, { "x", "[all]" }, { "[::1]", "[all]" },
        { "1.2.3.4:80", "[all]" }, { "1.2.3", "[all]" }, { "1.2.3.256", "[all]" },
        { "1.2.3.4.5", "[all]" }, { "255.255.255.255", "[all]" }, { "0.0.0.0", "[D]" } };

    for (size_t i = 0; i < countof(rows); i++)
        expect("default D; 1.2.3.4 a$k; 10.0.0.0/8 A; 10.1.0.0/16 B; 10.1.1.0/24 C; ::1 six;"
               "2001:db8::/32 db; 255.255.255.255 all; 11.0.0.0/8 x; delete 11.0.0.0/8;",
            rows[i][0], rows[i][1]);
    expect("1.0.0.0/8 a; 1.2.0.0/16 b; delete 1.0.0.0/8;", "1.2.3.4", "[b]");
    expect("1.0.0.0/8 a; 1.2.0.0/16 b; delete 1.0.0.0/8;", "1.3.3.4", "[]");
    expect("", "1.3.3.4", "[]");
}
END_TEST

START_TEST(ranges_have_their_addresses)
{
    static const char *const rows[][2] = { { "1.2.3.3", "[D]" }, { "1.2.3.4", "[a]" },
        { "1.2.3.6", "[D]" }, { "1.2.3.8", "[a]" }, { "1.2.3.9", "[c]" }, { "1.2.3.10", "[D]" },
        { "9.4.0.0", "[n]" }, { "9.5.0.0", "[m]" }, { "9.6.255.255", "[m]" }, { "9.7.0.0", "[z]" },
        { "9.8.0.5", "[z]" }, { "9.8.0.6", "[n]" }, { "9.255.255.255", "[n]" },
        { "::ffff:1.2.3.4", "[a]" }, { "::1", "[D]" }, { "2001:db8::7", "[s]" }, { "x", "[D]" } };

    for (size_t i = 0; i < countof(rows); i++)
        expect("ranges; default D; 1.2.3.4-1.2.3.9 a; 1.2.3.6-1.2.3.7 b; 1.2.3.9-1.2.3.9 c;"
               "delete 1.2.3.6-1.2.3.7; 9.0.0.0-9.255.255.255 n; 9.5.0.0-9.6.255.255 m;"
               "9.7.0.0-9.8.0.5 z; 2001:db8::-2001:db8::ffff s;",
            rows[i][0], rows[i][1]);
    expect("ranges; 1.2.0.0-1.2.255.255 a; 1.3.0.0-1.3.255.255 b; 1.2.200.0-1.3.10.0 c;",
        "1.2.201.0", "[c]");
    /* the example of nginx's documentation */
    expect("ranges; 1.0.0.0-1.0.0.0 a; 1.0.0.1-1.0.0.1 b; 1.0.0.1-1.0.0.255 c;", "1.0.0.1", "[b]");
    expect("ranges; 1.0.0.0-1.0.0.0 a; 1.0.0.1-1.0.0.1 b; 1.0.0.1-1.0.0.255 c;", "1.0.0.2", "[c]");
    expect("ranges; 0.0.0.0-255.255.255.255 a;", "255.255.255.255", "[a]");
}
END_TEST

START_TEST(the_client_s_address_is_the_usual_one)
{
    static const char *const rows[] = { "$g", "here", NULL };

    defined_expect("geo $g { default there; 192.0.2.0/24 here; } server { ", rows, "");
}
END_TEST

START_TEST(hashes_are_those_of_murmur)
{
    ck_assert_uint_eq(split_clients_hash("", 0), 0);
    ck_assert_uint_eq(split_clients_hash("a", 1), 0x92685f5e);
    ck_assert_uint_eq(split_clients_hash("abc", 3), 0x13577c9b);
    ck_assert_uint_eq(split_clients_hash("192.0.2.1", 9), 0xc8da48f3);
    ck_assert_uint_eq(split_clients_hash("\xff\xfe\xfd\xfc\xfb", 5), 0xfae45ebc);
}
END_TEST

/* 0.5 and 2 % end where nginx's documentation says. */
START_TEST(parts_end_where_nginx_s_do)
{
    const struct split_part parts[] = {
        { .end = split_clients_share(50) },
        { .end = split_clients_share(50) + split_clients_share(200) },
    };
    const struct split_clients split = { .parts = parts, .n = 2 };

    ck_assert_ptr_eq(split_clients_find(&split, 0), &parts[0].text);
    ck_assert_ptr_eq(split_clients_find(&split, 21474835), &parts[0].text);
    ck_assert_ptr_eq(split_clients_find(&split, 21474836), &parts[1].text);
    ck_assert_ptr_eq(split_clients_find(&split, 107374180), &parts[1].text);
    ck_assert_ptr_eq(split_clients_find(&split, 107374181), &split.rest);
    ck_assert_ptr_eq(split_clients_find(&split, UINT32_MAX), &split.rest);
}
END_TEST

START_TEST(a_part_has_its_clients)
{
    static const char *const rows[] = { "$s $none $all $text", "z  a $pid", NULL };

    defined_expect("split_clients abc $s { 5% x; 2.5% y; .1% z; 10.% o; * r; }"
                   "split_clients abc $none { 0.01% x; } split_clients abc $all { 100% a; }"
                   "split_clients abc $text { * $pid; } server { ",
        rows, "");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_smallest_network_counts);
    tcase_add_test(tcase, ranges_have_their_addresses);
    tcase_add_test(tcase, the_client_s_address_is_the_usual_one);
    tcase_add_test(tcase, hashes_are_those_of_murmur);
    tcase_add_test(tcase, parts_end_where_nginx_s_do);
    tcase_add_test(tcase, a_part_has_its_clients);
}

TEST_MAIN("geo", add_tests)

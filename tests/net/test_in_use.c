/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets, read from tables in the kernel's format, and the addresses blocked by them. */
#include "net/address_parse.h"
#include "net/in_use.h"

#include "base/compiler.h"
#include "base/file_tree.h"
#include "support/directory.h"

#include <stdio.h>
#include <string.h>

/* The connections stand behind the listening sockets. */
static const char tcp[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 "
    "1 0000000000000000 100 0 0 10 0\n"
    "   1: 00000000:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12 "
    "1 0000000000000000 100 0 0 10 0\n"
    "   2: 0100007F:1F92 0100007F:E0C6 01 00000000:00000000 00:00000000 00000000     0        0 13 "
    "1 0000000000000000 20 4 30 10 -1\n";
static const char tcp6[] =
    "  sl  local_address                         remote_address                        st\n"
    "   0: 00000000000000000000000000000000:1F93 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000     0        0 14 1 0 100 0 0 10 0\n"
    "   1: 00000000000000000000000001000000:1F94 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000     0        0 15 1 0 100 0 0 10 0\n"
    "   2: 000080FE000000000000000001000000:1F95 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000     0        0 21 1 0 100 0 0 10 0\n";
static const char local[] =
    "Num       RefCount Protocol Flags    Type St Inode Path\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01 16 /run/a b.sock\n"
    "0000000000000000: 00000003 00000000 00000000 0001 03 17 /run/connected.sock\n"
    "0000000000000000: 00000002 00000000 00000000 0002 01 18 /run/datagrams\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01 19 @/abstract\n"
    "0000000000000000: 00000003 00000000 00000000 0001 03 20\n";

/* An address, and the inode of the socket in its way; 0: none. */
static const struct {
    const char *address;
    unsigned long inode;
    bool unsure, dual; /* dual: with ipv6only=off */
} cases[] = {
    { "127.0.0.1:8080", 11, false, false },
    { "0.0.0.0:8080", 11, false, false },
    { "127.0.0.2:8080", 0, false, false },
    { "[::]:8080", 0, false, false },
    { "[::]:8080", 11, false, true },
    { "[::1]:8080", 0, false, true },
    { "127.0.0.1:8081", 12, false, false },
    { "0.0.0.0:8081", 12, false, false },
    { "[::]:8081", 12, false, true },
    { "127.0.0.1:8082", 0, false, false }, /* a connection's */
    { "[::]:8083", 14, false, false },
    { "[::1]:8083", 14, false, false },
    { "127.0.0.1:8083", 14, true, false },
    { "0.0.0.0:8083", 14, true, false },
    { "[::1]:8084", 15, false, false },
    { "[::]:8084", 15, false, false },
    { "[::2]:8084", 0, false, false },
    { "0.0.0.0:8084", 0, false, false },
    { "0.0.0.0", 0, false, false },
    { "unix:/run/a b.sock", 16, false, false },
    { "unix:/run/connected.sock", 0, false, false },
    { "unix:/run/datagrams", 18, false, false },
    { "unix:/abstract", 0, false, false },
};

/* The tables do not tell of which interface a link-local address is. */
static void check_link_local(const struct in_use *in_use, const char *address, unsigned long inode)
{
    struct listener listener = { .options.ipv6only = true };
    const struct in_use_socket *found;
    bool sure = true;

    ck_assert_ptr_null(address_parse(address, 0, &listener.address));
    listener.address.in6.sin6_scope_id = 1;
    found = in_use_find(in_use, NULL, &listener, &sure);
    ck_assert_msg((found == NULL ? 0 : found->inode) == inode, "%s", address);
    if (found != NULL)
        ck_assert(sure == address_is_wildcard(&found->address));
}

static void check_case(const struct in_use *in_use, unsigned i)
{
    struct listener listener = { .options.ipv6only = !cases[i].dual };
    const struct in_use_socket *found;
    bool sure;

    ck_assert_ptr_null(address_parse(cases[i].address, 0, &listener.address));
    found = in_use_find(in_use, NULL, &listener, &sure);
    ck_assert_msg((found == NULL ? 0 : found->inode) == cases[i].inode, "%s", cases[i].address);
    if (found == NULL)
        return;
    ck_assert_msg(sure == !cases[i].unsure, "%s", cases[i].address);
    ck_assert_ptr_null(in_use_find(in_use, found, &listener, &sure));
}

START_TEST(what_listens_is_in_the_way)
{
    struct in_use in_use;

    file_tree_write(directory, "/proc/self/net/tcp", tcp);
    file_tree_write(directory, "/proc/self/net/tcp6", tcp6);
    file_tree_write(directory, "/proc/self/net/unix", local);
    ck_assert_int_eq(in_use_read(&in_use, directory), 0);
    ck_assert_uint_eq(in_use.n, 7);
    ck_assert_uint_eq(in_use.sockets[0].uid, 1000);
    for (unsigned i = 0; i < countof(cases); i++)
        check_case(&in_use, i);
    check_link_local(&in_use, "[fe80::1]:8085", 21);
    check_link_local(&in_use, "[fe80::2]:8085", 0);
    check_link_local(&in_use, "[fe80::1]:8083", 14);
    in_use_done(&in_use);
}
END_TEST

START_TEST(no_tables_are_nothing)
{
    struct in_use in_use;

    ck_assert_int_eq(in_use_read(&in_use, "/nonexistent"), 0);
    ck_assert_uint_eq(in_use.n, 0);
    in_use_done(&in_use);
}
END_TEST

static void add_tests(TCase *tcase)
{
    directory_add(tcase);
    tcase_add_test(tcase, what_listens_is_in_the_way);
    tcase_add_test(tcase, no_tables_are_nothing);
}

TEST_MAIN("in_use", add_tests)

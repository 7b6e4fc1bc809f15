/* SPDX-License-Identifier: BSD-2-Clause */
/* `debug_connection`: addresses, blocks, unix sockets and names. */
#include "settings/loading.h"
#include "support/test.h"

#include <arpa/inet.h>

START_TEST(debug_connection_takes_addresses_blocks_and_unix)
{
    struct loading loading;
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    const struct events_settings *events;

    loading_begin(&loading);
    accept_text(&loading,
        "events { debug_connection 127.0.0.0/8; debug_connection ::1; debug_connection unix:; }",
        "");
    events = &loading.cycle->events;
    ck_assert_uint_eq(events->debug_n, 3);
    ck_assert(address_block_matches(&events->debug[0], (struct sockaddr *)&in));
    ck_assert(address_block_matches(&events->debug[1], (struct sockaddr *)&in6));
    ck_assert(address_block_matches(&events->debug[2], (struct sockaddr *)&un));
    ck_assert(!address_block_matches(&events->debug[0], (struct sockaddr *)&in6));
    loading_end(&loading);
}
END_TEST

/* A name counts as all addresses, beside further addresses. */
START_TEST(debug_connection_takes_names)
{
    struct loading loading;
    const struct events_settings *events;
    bool found = false;

    loading_begin(&loading);
    accept_text(&loading, "events { debug_connection unix:; debug_connection localhost; }", "");
    events = &loading.cycle->events;
    ck_assert_uint_ge(events->debug_n, 2);
    ck_assert_int_eq(events->debug[0].address.any.sa_family, AF_UNIX);
    for (unsigned i = 1; i < events->debug_n; i++) {
        const struct address *address = &events->debug[i].address;

        ck_assert_uint_eq(events->debug[i].bits, address->any.sa_family == AF_INET ? 32 : 128);
        found = found || address_block_matches(&events->debug[i], &address->any);
    }
    ck_assert(found);
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, debug_connection_takes_addresses_blocks_and_unix);
    tcase_add_test(tcase, debug_connection_takes_names);
}

TEST_MAIN("debug_connection", add_tests)

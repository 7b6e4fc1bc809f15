/* SPDX-License-Identifier: BSD-2-Clause */
/* The directives `resolver` and `resolver_timeout`: refusals, inheritance, and the resolvers needed
 * by a worker. */
#include "names/client.h"
#include "names/names.h"
#include "settings/loading.h"
#include "support/test.h"

#include <string.h>

#define BEGIN "events { } stream { server { listen 127.0.0.1:1; "
#define END " } }"

static void refuse(struct loading *loading, const char *directive, const char *message)
{
    char text[256], expected[256];

    snprintf(text, sizeof(text), BEGIN "%s;" END, directive);
    load(loading, text);
    ck_assert_ptr_null(loading->cycle);
    snprintf(expected, sizeof(expected), ": %s in /main:1:", message);
    ck_assert_msg(strstr(loading->report, expected) != NULL, "%s", loading->report);
}

START_TEST(wrong_values)
{
    struct loading loading;

    loading_begin(&loading);
    refuse(&loading, "resolver_timeout 0", "the value must be at least 1");
    if (names_client_built()) {
        refuse(&loading, "resolver valid=30s", "expected the address of a server of names");
        refuse(&loading, "resolver unix:/dns", "expected the address of a server of names");
        refuse(&loading, "resolver 127.0.0.1 valid=0", "expected a time after \"valid=\"");
        refuse(&loading, "resolver 127.0.0.1 valid=", "expected a time after \"valid=\"");
        refuse(&loading, "resolver 127.0.0.1 ipv4=no", "expected \"ipv4=on\" or \"ipv4=off\"");
        refuse(&loading, "resolver 127.0.0.1 ipv4=off ipv6=off",
            "\"ipv4\" and \"ipv6\" cannot both be off");
        refuse(&loading,
            "resolver [::1] [::1] [::1] [::1] [::1] [::1] [::1] [::1] [::1] [::1] [::1] [::1] "
            "[::1] [::1] [::1] [::1] [::1]",
            "there are 16 servers already");
    } else {
        refuse_text(&loading, BEGIN "resolver 127.0.0.1;" END,
            "\"resolver\" directive needs c-ares, which this build of forkbeard lacks in "
            "/main:1:50\n");
    }
    loading_end(&loading);
}
END_TEST

START_TEST(servers_inherit)
{
    struct loading loading;
    const struct stream_settings *stream;

    loading_begin(&loading);
    accept_text(&loading,
        "events { } stream { server { listen 127.0.0.1:1; }"
        "server { listen 127.0.0.1:2; resolver 10.0.0.1 10.0.0.2:99 valid=5s ipv4=off; }"
        "resolver [::1]; resolver_timeout 3s; }",
        "");
    stream = &loading.cycle->stream;
    ck_assert_str_eq(stream->resolver->servers, "[::1]:53");
    ck_assert_int_eq(stream->resolver_timeout, 3000);
    ck_assert_ptr_eq(loading_server(&loading, 0)->settings.resolver, stream->resolver);
    ck_assert_str_eq(
        loading_server(&loading, 1)->settings.resolver->servers, "10.0.0.1:53,10.0.0.2:99");
    ck_assert(!loading_server(&loading, 1)->settings.resolver->ipv4);
    ck_assert_int_eq(loading_server(&loading, 1)->settings.resolver_timeout, 3000);
    accept_text(&loading, BEGIN END, "");
    stream = &loading.cycle->stream;
    ck_assert_ptr_eq(stream->resolver, &stream->system);
    ck_assert_ptr_eq(loading_server(&loading, 0)->settings.resolver, &stream->system);
    ck_assert_int_eq(stream->resolver_timeout, 30000);
    loading_end(&loading);
}
END_TEST

/* Without a use there is none. */
START_TEST(what_is_used)
{
    struct loading loading;

    loading_begin(&loading);
    accept_text(&loading, BEGIN "echo;" END, "");
    ck_assert_uint_eq(names_slots(&loading.cycle->stream.system, NAMES_OF_SESSIONS), 0);
    ck_assert(!(loading.cycle->needs.rights & FB_NEEDS_RESOLVER));
    accept_text(&loading, BEGIN "resolver 10.0.0.1;" END, ""); /* no protocol */
    ck_assert_uint_eq(names_slots(&loading.cycle->stream.system, NAMES_OF_SESSIONS), 0);
    accept_text(&loading, BEGIN "echo; resolver 10.0.0.1:54;" END, "");
    ck_assert_uint_eq(
        names_slots(&loading.cycle->stream.system, NAMES_OF_SESSIONS), NAMES_SOCKETS + 1);
    ck_assert(loading.cycle->stream.system.users == 0);
    ck_assert(loading.cycle->needs.rights & FB_NEEDS_RESOLVER);
    ck_assert_uint_eq(STAILQ_FIRST(&loading.cycle->needs.ports)->port, 54);
    ck_assert_ptr_null(loading.cycle->stream.addresses);
    /* the names of servers are asked for by a helper: workers need no resolver for them */
    accept_text(&loading,
        "events {} stream { upstream u { server a.test:80; } "
        "server { listen 127.0.0.1:1; "
        "proxy_pass u; } }",
        "");
    ck_assert_uint_eq(names_slots(&loading.cycle->stream.system, NAMES_OF_SESSIONS), 0);
    ck_assert_uint_eq(
        names_slots(&loading.cycle->stream.system, NAMES_OF_GROUPS), NAMES_SOCKETS + 1);
    ck_assert(!(loading.cycle->needs.rights & FB_NEEDS_RESOLVER));
    ck_assert_ptr_nonnull(loading.cycle->stream.addresses);
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, wrong_values);
    if (!names_client_built())
        return;
    tcase_add_test(tcase, servers_inherit);
    tcase_add_test(tcase, what_is_used);
}

TEST_MAIN("resolver settings", add_tests)

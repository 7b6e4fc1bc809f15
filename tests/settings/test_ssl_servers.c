/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers with TLS, with and without a certificate, alone and together on an address. */
#include "features/server_name/server_name.h"
#include "settings/loading.h"
#include "support/test.h"

#include <string.h>

#define BEGIN "events { } stream { "
#define PAIR "ssl_certificate a.pem; ssl_certificate_key a.key; "

static struct loading loading;

static void begin(void)
{
    loading_begin(&loading);
}

static void end(void)
{
    loading_end(&loading);
}

START_TEST(a_server_without_tls_has_no_profile)
{
    accept_text(&loading, BEGIN "server { listen 1; } server { listen 2 ssl; " PAIR "} }", "");
    ck_assert_uint_eq(loading.cycle->tls.n, 1);
    ck_assert_ptr_null(loading_server(&loading, 0)->tls);
    accept_text(&loading, BEGIN "ssl_ciphers x; server { listen 1; } }", "");
    ck_assert_uint_eq(loading.cycle->tls.n, 0);
    accept_text(&loading, BEGIN "server { listen 1 ssl; ssl_reject_handshake on; } }", "");
    ck_assert_uint_eq(loading.cycle->tls.n, 1);
    ck_assert_uint_eq(loading.cycle->tls.list[0].pair_n, 0);
}
END_TEST

START_TEST(an_address_has_tls_for_all_of_its_servers)
{
    accept_text(&loading,
        BEGIN "server { listen 1; " PAIR "} server {\nlisten 1 ssl; server_name b; " PAIR "} }",
        "warning: \"ssl\" is in force for all servers of 0.0.0.0:1, although not all servers have "
        "the parameter in /main:2:8\n");
    ck_assert(loading_binding(&loading, 0)->ssl);
    refuse_text(&loading,
        BEGIN "server { listen 1; } server {\nlisten 1 ssl; server_name b; " PAIR "} }",
        "warning: \"ssl\" is in force for all servers of 0.0.0.0:1, although not all servers have "
        "the parameter in /main:2:8\n"
        "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive in /main:1:37\n");
    accept_text(
        &loading, BEGIN "server { listen 1; } server { listen 127.0.0.1:1 ssl; " PAIR "} }", "");
    ck_assert(!loading_binding(&loading, 0)->ssl);
    ck_assert(STAILQ_NEXT(loading_binding(&loading, 0), link)->ssl);
}
END_TEST

#define NO_CERTIFICATE "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive in "
#define VERIFY "ssl_verify_client on; ssl_client_certificate ca.pem; "

/* Returns the binding of the address's server, by its place among all. */
static const struct binding *named_binding(unsigned place)
{
    const struct server_names *names = loading_binding(&loading, 0)->names;

    ck_assert_ptr_nonnull(names);
    ck_assert_uint_lt(place, names->n);
    ck_assert(names->servers[place].binding->ssl);
    return names->servers[place].binding;
}

START_TEST(a_server_without_a_certificate_has_the_default_server_s)
{
    accept_text(&loading,
        BEGIN "server { listen 1 ssl; server_name b; " PAIR "} "
              "server { listen 1 ssl default_server; ssl_reject_handshake on; " PAIR "} "
              "server { listen 1 ssl; server_name c; } }",
        "");
    ck_assert_uint_eq(loading.cycle->tls.n, 2);
    ck_assert_ptr_eq(named_binding(0)->server->tls, &loading.cycle->tls.list[1]);
    ck_assert_ptr_eq(named_binding(1)->server->tls, &loading.cycle->tls.list[0]);
    ck_assert_ptr_null(named_binding(2)->server->tls);
    ck_assert_ptr_eq(named_binding(2)->tls, &loading.cycle->tls.list[1]);
    /* a default server that rejects all other names needs no certificate; the rest do then */
    accept_text(&loading,
        BEGIN "server { listen 1 ssl; ssl_reject_handshake on; } "
              "server { listen 1 ssl; server_name b; " PAIR "} "
              "server { listen 1 ssl; server_name c; ssl_reject_handshake on; } }",
        "");
    refuse_text(&loading,
        BEGIN "server { listen 1 ssl; ssl_reject_handshake on; }\n"
              "server { listen 1 ssl; server_name b; } }",
        NO_CERTIFICATE "/main:2:17\n");
}
END_TEST

START_TEST(a_server_without_a_certificate_verifies_as_the_default_server)
{
    static const char mistake[] =
        "a server without \"ssl_certificate\" has the TLS of the default server, and cannot verify "
        "clients in another way in /main:2:17\n";

    refuse_text(&loading,
        BEGIN "server { listen 1 ssl; " PAIR "}\nserver { listen 1 ssl; server_name b; " VERIFY
              "} }",
        mistake);
    refuse_text(&loading,
        BEGIN "server { listen 1 ssl; " PAIR VERIFY
              "}\nserver { listen 1 ssl; server_name b; ssl_verify_client on; "
              "ssl_client_certificate other.pem; } }",
        mistake);
    accept_text(&loading,
        BEGIN VERIFY "server { listen 1 ssl; " PAIR "} server { listen 1 ssl; server_name b; } }",
        "");
}
END_TEST

/* A profile for each directory of challenges, without settings of servers. */
START_TEST(challenges_have_a_profile)
{
    static const uint8_t challenged[] = { 1, 1, 0, 0, 1, 1 };
    const struct tls_profiles *profiles;

    accept_text(&loading,
        BEGIN PAIR "ssl_alpn_challenge_directory a; ssl_reject_handshake on; ssl_alpn h2;"
                   "server { listen 1 ssl; } server { listen 2 ssl; listen 22; }"
                   "server { listen 3; }"
                   "server { listen 4 ssl; ssl_alpn_challenge_directory \"\"; }"
                   "server { listen 5 ssl; ssl_alpn_challenge_directory b; }"
                   "server { listen 6 ssl; ssl_alpn_challenge_directory ./a; } }",
        "");
    profiles = &loading.cycle->tls;
    for (unsigned i = 0; i < countof(challenged); i++) {
        const struct server *server = loading_server(&loading, i);
        const struct tls_profile *profile = server->challenges;

        ck_assert_uint_eq(profile != NULL, challenged[i]);
        if (profile == NULL)
            continue;
        ck_assert_ptr_eq(profile, &profiles->list[profile->index]);
        ck_assert_uint_ne(profile->index, server->tls->index);
        ck_assert_uint_eq(profile->alpn_n, 11);
        ck_assert_mem_eq(profile->alpn, "\012acme-tls/1", 11);
        ck_assert(profile->pair_n == 0 && !profile->reject && !profile->tickets);
    }
    ck_assert_ptr_eq(
        loading_server(&loading, 0)->challenges, loading_server(&loading, 1)->challenges);
    ck_assert_str_eq(strrchr(loading_server(&loading, 4)->challenges->challenges, '/'), "/b");
    ck_assert_uint_eq(profiles->n, 7);
    ck_assert_uint_ge(profiles->directory_n, 2);
}
END_TEST

/* Once for all servers, and at a start by a keeper. */
START_TEST(a_test_warns_of_a_missing_directory)
{
    const char *const text = "pid main.pid; error_log stderr; events { } stream { " PAIR
                             "\nssl_alpn_challenge_directory missing; server { listen 1 ssl; }"
                             "server { listen 2 ssl; } server { listen 3 ssl;\n"
                             "ssl_alpn_challenge_directory .; } }";

    accept_text(&loading, text, "");
    loading.options.testing = true;
    accept_text(&loading, text,
        "warning: challenges are not answered: there is no directory \"/missing\" in "
        "/main:2:30\n");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, a_server_without_tls_has_no_profile);
    tcase_add_test(tcase, an_address_has_tls_for_all_of_its_servers);
    tcase_add_test(tcase, a_server_without_a_certificate_has_the_default_server_s);
    tcase_add_test(tcase, a_server_without_a_certificate_verifies_as_the_default_server);
    tcase_add_test(tcase, challenges_have_a_profile);
    tcase_add_test(tcase, a_test_warns_of_a_missing_directory);
}

TEST_MAIN("settings_ssl_servers", add_tests)

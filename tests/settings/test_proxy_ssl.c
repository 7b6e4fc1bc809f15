/* SPDX-License-Identifier: BSD-2-Clause */
/* The directives of TLS to servers: profiles, what is inherited and shared, what belongs together,
 * and the names of a protocol's own. */
#include "settings/loading.h"
#include "support/test.h"
#include "text/template.h"

#include <string.h>

#define BEGIN "events { } stream { "
#define SERVER "server { listen 1; proxy_pass 192.0.2.9:2; "

static struct loading loading;

static void begin(void)
{
    loading_begin(&loading);
}

static void end(void)
{
    loading_end(&loading);
}

#if HAVE_OPENSSL

/* A protocol with TLS to servers twice, under names of its own. */
struct twice {
    char odd[3]; /* values of the daemon's begin behind, at a multiple of the alignment */
    const fb_tls_profile *one, *two;
};

static const fb_directive directives[] = {
    { .name = "twice", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "twice_tls", .value = FB_VALUE_TLS, .offset = offsetof(struct twice, one) },
    { .name = "other",
        .value = FB_VALUE_TLS,
        .offset = offsetof(struct twice, two),
        .initial = "on" },
};
static const fb_ops ops = { .size = sizeof(fb_ops) };

static int check_done(fb_conf *conf, void *own, const void *parent)
{
    const struct twice *values = own;

    (void)conf;
    (void)parent;
    ck_assert(values->one == NULL || values->one != values->two);
    return 0;
}

static const fb_protocol twice = {
    FB_PROTOCOL_HEADER,
    .name = "twice",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct twice),
    .ops = &ops,
    .conf_done = check_done,
};

static const struct twice *twice_of(unsigned i)
{
    return loading_server(&loading, i)->protocol_conf;
}

/* Returns the i-th profile of the configuration. */
static const struct tls_profile *profile_at(unsigned i)
{
    ck_assert_uint_lt(i, loading.cycle->tls.n);
    ck_assert_uint_eq(loading.cycle->tls.list[i].index, i);
    ck_assert_int_eq(loading.cycle->tls.list[i].role, TLS_CLIENT);
    return &loading.cycle->tls.list[i];
}

static const struct tls_profile *client_with(const char *values)
{
    char text[1024];

    snprintf(text, sizeof(text), BEGIN SERVER "proxy_ssl on;\n%s } }", values);
    accept_text(&loading, text, "");
    ck_assert_uint_eq(loading.cycle->tls.n, 1);
    return profile_at(0);
}

static void check_file_is(uint32_t index, const char *name)
{
    ck_assert_uint_lt(index, loading.cycle->tls.file_n);
    ck_assert_str_eq(strrchr(loading.cycle->tls.files[index].path, '/'), name);
    ck_assert_ptr_nonnull(strstr(loading.cycle->tls.files[index].at, "/main:"));
}

START_TEST(defaults_are_nginx_s)
{
    const struct tls_profile *profile = client_with("");

    ck_assert_str_eq(strrchr(profile->at, '/'), "/main:1");
    ck_assert_uint_eq(profile->pair_n, 0);
    ck_assert_uint_eq(profile->versions, TLS_VERSION_1_2 | TLS_VERSION_1_3);
    ck_assert(!profile->sends_name && profile->tickets);
    ck_assert_int_eq(profile->verify, TLS_VERIFY_OFF);
    ck_assert_uint_eq(profile->verify_depth, 1);
    ck_assert_ptr_null(profile->ciphers);
    ck_assert_ptr_null(profile->alpn);
    ck_assert_uint_eq(profile->client_ca, TLS_NO_FILE);
    ck_assert_uint_eq(profile->trusted, TLS_NO_FILE);
    ck_assert_uint_eq(profile->crl, TLS_NO_FILE);
    ck_assert_uint_eq(profile->passwords, TLS_NO_FILE);
    ck_assert_uint_eq(profile->dhparam, TLS_NO_FILE);
    ck_assert_ptr_null(loading_server(&loading, 0)->tls);
}
END_TEST

START_TEST(values_are_set)
{
    const struct tls_profile *profile =
        client_with("proxy_ssl_certificate a.pem; proxy_ssl_certificate_key a.key; "
                    "proxy_ssl_password_file words; proxy_ssl_trusted_certificate ca.pem; "
                    "proxy_ssl_crl a.pem; proxy_ssl_verify on; proxy_ssl_verify_depth 3; "
                    "proxy_ssl_server_name on; proxy_ssl_session_reuse off; "
                    "proxy_ssl_protocols TLSv1.3; proxy_ssl_ciphers HIGH; proxy_ssl_alpn h2; "
                    "proxy_ssl_conf_command a b; proxy_ssl_conf_command c d;");

    ck_assert_uint_eq(profile->pair_n, 1);
    check_file_is(profile->pairs[0].certificate, "/a.pem");
    check_file_is(profile->pairs[0].key, "/a.key");
    check_file_is(profile->passwords, "/words");
    check_file_is(profile->trusted, "/ca.pem");
    ck_assert_uint_eq(profile->crl, profile->pairs[0].certificate); /* a path is one entry */
    ck_assert_int_eq(profile->verify, TLS_VERIFY_ON);
    ck_assert_uint_eq(profile->verify_depth, 3);
    ck_assert(profile->sends_name && !profile->tickets);
    ck_assert_uint_eq(profile->versions, TLS_VERSION_1_3);
    ck_assert_str_eq(profile->ciphers, "HIGH");
    ck_assert_uint_eq(profile->alpn_n, 3);
    ck_assert_mem_eq(profile->alpn, "\2h2", 3);
    ck_assert_uint_eq(profile->command_n, 2);
    ck_assert_str_eq(profile->commands[1].value, "d");
}
END_TEST

START_TEST(certificates_have_variables)
{
    const struct tls_profile *profile =
        client_with("proxy_ssl_certificate /etc/a/$server_port.pem; proxy_ssl_certificate_key "
                    "/etc/b/$server_port.key; proxy_ssl_certificate_cache max=5;");

    ck_assert_uint_eq(profile->pair_n, 0);
    ck_assert_uint_eq(profile->named.n, 2);
    ck_assert_str_eq(profile->named.directories[0], "/etc/a");
    ck_assert_str_eq(profile->named.directories[1], "/etc/b");
    ck_assert_uint_eq(profile->named.cache->max, 5);
    ck_assert_uint_eq(loading.cycle->tls.directory_n, 2);
}
END_TEST

START_TEST(servers_inherit_and_share)
{
    accept_text(&loading,
        BEGIN "proxy_ssl_protocols TLSv1.2; proxy_ssl_certificate a; proxy_ssl_certificate_key b; "
              "proxy_ssl on; server { listen 1; proxy_pass 192.0.2.9:2; } "
              "server { listen 2; proxy_pass 192.0.2.9:2; proxy_ssl off; } "
              "server { listen 3; proxy_pass 192.0.2.9:2; proxy_ssl_certificate \"\"; "
              "proxy_ssl_protocols TLSv1.3; } server { listen 4; proxy_pass 192.0.2.9:2; } "
              "server { listen 5 ssl; ssl_certificate a; ssl_certificate_key b; proxy_pass "
              "192.0.2.9:2; } }",
        "");
    ck_assert_uint_eq(loading.cycle->tls.n, 3);
    ck_assert_ptr_eq(loading_server(&loading, 4)->tls, &loading.cycle->tls.list[0]);
    ck_assert_int_eq(loading.cycle->tls.list[0].role, TLS_SERVER);
    ck_assert_uint_eq(loading.cycle->tls.file_n, 2);
    ck_assert_uint_eq(profile_at(1)->versions, TLS_VERSION_1_3);
    ck_assert_uint_eq(profile_at(1)->pair_n, 0);
    ck_assert_uint_eq(profile_at(2)->versions, TLS_VERSION_1_2);
    ck_assert_uint_eq(profile_at(2)->pair_n, 1);
}
END_TEST

START_TEST(what_belongs_together)
{
    refuse_text(&loading, BEGIN SERVER "proxy_ssl on;\nproxy_ssl_certificate b.pem; } }",
        "no \"proxy_ssl_certificate_key\" is defined for certificate \"b.pem\" in /main:2:23\n");
    refuse_text(&loading, BEGIN "proxy_ssl_verify on;\n" SERVER "proxy_ssl on; } }",
        "no proxy_ssl_trusted_certificate for proxy_ssl_verify in /main:1:21\n");
    refuse_text(&loading,
        BEGIN "proxy_ssl_trusted_certificate a;\n" SERVER
              "proxy_ssl on;\nproxy_ssl_verify on; proxy_ssl_trusted_certificate \"\"; } }",
        "no proxy_ssl_trusted_certificate for proxy_ssl_verify in /main:3:1\n");
    accept_text(&loading, BEGIN SERVER "proxy_ssl_verify on; proxy_ssl_certificate b; } }", "");
    ck_assert_uint_eq(loading.cycle->tls.n, 0);
    accept_text(&loading, BEGIN SERVER "proxy_ssl on;\nproxy_ssl_protocols SSLv3 TLSv1.2; } }",
        "warning: \"proxy_ssl_protocols\" leaves out SSLv3: only TLSv1.2 and TLSv1.3 are supported "
        "in /main:2:1\n");
    refuse_text(&loading, BEGIN "server { listen 1;\nproxy_ssl_verify off; } }",
        "\"proxy_ssl_verify\" directive needs \"proxy_pass\" in the same server in /main:2:1\n");
    refuse_text(&loading, BEGIN SERVER "proxy_ssl on; proxy_ssl_name $none; } }",
        "unknown \"none\" variable in /main:1:93\n");
}
END_TEST

START_TEST(a_protocol_has_names_of_its_own)
{
    static const fb_protocol *const protocols[] = { &twice, NULL };
    struct value name;

    loading.options.protocols = protocols;
    accept_text(&loading,
        BEGIN "twice_tls_protocols TLSv1.2; server { listen 1; twice; twice_tls on; twice_tls_name "
              "a.test:443; } server { listen 2; twice; other off; } server { listen 3; twice; "
              "other_verify_depth 7; } }",
        "");
    ck_assert_uint_eq(loading.cycle->tls.n, 3);
    ck_assert_uint_eq(twice_of(0)->one->profile->versions, TLS_VERSION_1_2);
    ck_assert(template_is_constant(twice_of(0)->one->name, &name));
    ck_assert_mem_eq(name.p, "a.test:443", name.n);
    ck_assert_uint_eq(twice_of(0)->two->profile->versions, TLS_VERSION_1_2 | TLS_VERSION_1_3);
    ck_assert_ptr_null(twice_of(0)->two->name);
    ck_assert_ptr_null(twice_of(2)->one);
    ck_assert_uint_eq(twice_of(2)->two->profile->verify_depth, 7);
    refuse_text(&loading, BEGIN "server { listen 1; twice; twice_tls on; twice_tls_verify on; } }",
        "no twice_tls_trusted_certificate for twice_tls_verify in /main:1:61\n");
    refuse_text(&loading, BEGIN "server { listen 1; twice; proxy_ssl on; } }",
        "\"proxy_ssl\" directive of nginx is not supported: OpenSSL is missing in this build in "
        "/main:1:47\n");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, defaults_are_nginx_s);
    tcase_add_test(tcase, values_are_set);
    tcase_add_test(tcase, certificates_have_variables);
    tcase_add_test(tcase, servers_inherit_and_share);
    tcase_add_test(tcase, what_belongs_together);
    tcase_add_test(tcase, a_protocol_has_names_of_its_own);
}

#else

START_TEST(a_build_without_openssl_refuses_tls_to_servers)
{
    refuse_text(&loading, BEGIN SERVER "proxy_ssl on; } }",
        "\"proxy_ssl\" directive of nginx is not supported: OpenSSL is missing in this build in "
        "/main:1:64\n");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, a_build_without_openssl_refuses_tls_to_servers);
}

#endif

TEST_MAIN("settings/proxy_ssl", add_tests)

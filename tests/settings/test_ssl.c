/* SPDX-License-Identifier: BSD-2-Clause */
/* The directives of TLS to clients: profiles, what is inherited, what is warned of and refused. */
#include "settings/loading.h"
#include "support/test.h"
#include "text/template.h"

#include <string.h>

#define BEGIN "events { } stream { "
#define PAIRS "expected \"off\", or max=NUMBER inactive=TIME valid=TIME"
#define PAIR "ssl_certificate a.pem; ssl_certificate_key a.key; "
/* a server with TLS, whose further directives begin in the second line */
#define SERVER(...) BEGIN "server { listen 1 ssl; " PAIR "\n" __VA_ARGS__ " } }"

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

/* Loads a server with TLS and further directives; returns its profile. */
static const struct tls_profile *profile_with(const char *directives)
{
    char text[1024];

    snprintf(text, sizeof(text), SERVER("%s"), directives);
    accept_text(&loading, text, "");
    ck_assert_uint_eq(loading.cycle->tls.n, 1);
    ck_assert_ptr_eq(loading_server(&loading, 0)->tls, &loading.cycle->tls.list[0]);
    return &loading.cycle->tls.list[0];
}

/* The file of the index is that of the directory. */
static void check_file_is(uint32_t index, const char *name, const char *at)
{
    const struct tls_profiles *profiles = &loading.cycle->tls;
    size_t n = strlen(loading.directory);

    ck_assert_uint_lt(index, profiles->file_n);
    ck_assert_int_eq(strncmp(profiles->files[index].path, loading.directory, n), 0);
    ck_assert_str_eq(profiles->files[index].path + n, name);
    ck_assert_str_eq(strrchr(profiles->files[index].at, '/'), at);
}

/* The value of a path begins with the directory; the rest is the session's. */
static void check_named(const struct tls_profile *profile, unsigned i, const char *beneath,
    const char *variable, const char *end)
{
    const struct template *names = profile->named.names[i];
    size_t n = strlen(loading.directory);

    ck_assert_uint_lt(i, profile->named.n);
    if (beneath[0] == '/') {
        ck_assert_str_eq(profile->named.directories[i], beneath);
    } else {
        ck_assert_int_eq(strncmp(profile->named.directories[i], loading.directory, n), 0);
        ck_assert_str_eq(profile->named.directories[i] + n, beneath[0] != '\0' ? beneath - 1 : "");
    }
    if (variable == NULL) {
        ck_assert_uint_eq(names->part_n, 1);
    } else {
        ck_assert_uint_eq(names->part_n, 2);
        ck_assert_str_eq(names->parts[0].variable->name, variable);
    }
    ck_assert_str_eq(names->parts[names->part_n - 1].text.p, end);
}

START_TEST(paths_have_variables)
{
    const struct tls_profile *profile;

    accept_text(&loading,
        BEGIN "server { listen 1 ssl; ssl_certificate /etc/a/$ssl_server_name.crt; "
              "ssl_certificate_key /etc/a/b/only.key; ssl_certificate c.pem; ssl_certificate_key "
              "c.key; ssl_certificate $server_addr.crt; ssl_certificate_key /etc/a/$pid.key; } }",
        "");
    profile = &loading.cycle->tls.list[0];
    ck_assert_uint_eq(profile->pair_n, 1);
    check_file_is(profile->pairs[0].certificate, "/c.pem", "/main:1");
    ck_assert_uint_eq(loading.cycle->tls.pair_n, 1);
    ck_assert_uint_eq(profile->named.n, 4);
    check_named(profile, 0, "/etc/a", "ssl_server_name", ".crt");
    check_named(profile, 1, "/etc/a/b", NULL, "only.key");
    check_named(profile, 2, "", "server_addr", ".crt");
    check_named(profile, 3, "/etc/a", "pid", ".key");
    ck_assert_ptr_eq(profile->named.directories[3], profile->named.directories[0]);
    ck_assert_uint_eq(loading.cycle->tls.directory_n, 3);
    ck_assert_str_eq(profile->named.asked->name, "ssl_server_name");
    ck_assert_ptr_null(profile->named.cache);
    accept_text(&loading,
        BEGIN
        "server { listen 1 ssl; ssl_certificate /$pid.pem; ssl_certificate_key /$pid.pem; } }",
        "warning: \"/$pid.pem\" begins with no directory but \"/\", so keeper processes may read "
        "all files "
        "of "
        "their user in /main:1:60\n");
    refuse_text(&loading,
        BEGIN "server { listen 1 ssl; ssl_certificate $none.crt; "
              "ssl_certificate_key a.key; } }",
        "unknown \"none\" variable in /main:1:60\n");
}
END_TEST

START_TEST(caches_are_inherited)
{
    const struct tls_profile *list;

    accept_text(&loading,
        BEGIN "ssl_certificate $pid.crt; ssl_certificate_key $pid.key; ssl_certificate_cache max=9 "
              "inactive=1m valid=2m; server { listen 1 ssl; ssl_alpn a; } server { listen 2 ssl; "
              "ssl_certificate_cache off; } server { listen 3 ssl; ssl_certificate_cache max=1; } "
              "server { listen 4 ssl; ssl_alpn b; } }",
        "");
    list = loading.cycle->tls.list;
    ck_assert_uint_eq(loading.cycle->tls.n, 4);
    ck_assert_uint_eq(loading.cycle->tls.cache_n, 2);
    ck_assert_uint_eq(list[0].named.cache->max, 9);
    ck_assert_int_eq(list[0].named.cache->inactive, 60000);
    ck_assert_int_eq(list[0].named.cache->valid, 120000);
    ck_assert_ptr_null(list[1].named.cache);
    ck_assert_uint_eq(list[2].named.cache->index + list[0].named.cache->index, 1);
    ck_assert_int_eq(list[2].named.cache->inactive, 10000);
    ck_assert_int_eq(list[2].named.cache->valid, 60000);
    ck_assert_ptr_eq(list[3].named.cache, list[0].named.cache);
}
END_TEST

START_TEST(defaults_are_nginx_s)
{
    const struct tls_profile *profile = profile_with("");

    ck_assert_str_eq(strrchr(profile->at, '/'), "/main:1");
    ck_assert_uint_eq(profile->pair_n, 1);
    check_file_is(profile->pairs[0].certificate, "/a.pem", "/main:1");
    check_file_is(profile->pairs[0].key, "/a.key", "/main:1");
    ck_assert_uint_eq(loading.cycle->tls.file_n, 2);
    ck_assert_uint_eq(profile->versions, TLS_VERSION_1_2 | TLS_VERSION_1_3);
    ck_assert(!profile->prefer_server_ciphers && !profile->reject && profile->tickets);
    ck_assert_ptr_null(profile->ciphers);
    ck_assert_ptr_null(profile->groups);
    ck_assert_ptr_null(profile->alpn);
    ck_assert_ptr_null(profile->commands);
    ck_assert_int_eq(profile->verify, TLS_VERIFY_OFF);
    ck_assert_uint_eq(profile->verify_depth, 1);
    ck_assert_uint_eq(profile->client_ca, TLS_NO_FILE);
    ck_assert_uint_eq(profile->trusted, TLS_NO_FILE);
    ck_assert_uint_eq(profile->crl, TLS_NO_FILE);
    ck_assert_uint_eq(profile->dhparam, TLS_NO_FILE);
    ck_assert_uint_eq(profile->passwords, TLS_NO_FILE);
    ck_assert_uint_eq(profile->ticket_key_n, 0);
    ck_assert_uint_eq(profile->session_timeout, 300);
    ck_assert_uint_eq(profile->handshake_timeout, 60000);
    ck_assert(loading_binding(&loading, 0)->ssl);
    ck_assert(!loading_server(&loading, 0)->keeps_tls);
}
END_TEST

static const struct {
    const char *commands;
    bool offload;
} offloads[] = {
    { "", false },
    { "ssl_conf_command Options KTLS;", true },
    { "ssl_conf_command options ktls;", true },
    { "ssl_conf_command Options PrioritizeChaCha,+KTLS;", true },
    { "ssl_conf_command Options -KTLS;", false },
    { "ssl_conf_command Options KTLS,-KTLS;", false },
    { "ssl_conf_command Options KTLS; ssl_conf_command Options -KTLS;", false },
    { "ssl_conf_command Options KTLS; ssl_conf_command Options PrioritizeChaCha;", true },
    { "ssl_conf_command Options KTLSX;", false },
    { "ssl_conf_command Ciphersuites KTLS;", false },
};

START_TEST(the_kernel_seals_where_an_option_says_so)
{
    ck_assert_int_eq(profile_with(offloads[_i].commands)->offload, offloads[_i].offload);
}
END_TEST

START_TEST(values_are_set)
{
    const struct tls_profile *profile = profile_with(
        "ssl_ciphers HIGH:!aNULL:!MD5; ssl_prefer_server_ciphers on; ssl_protocols TLSv1.3;"
        "ssl_ecdh_curve X25519MLKEM768:X25519; ssl_conf_command Options PrioritizeChaCha;"
        "ssl_conf_command Groups P-256; ssl_session_tickets off; ssl_session_timeout 1h;"
        "ssl_handshake_timeout 5s; ssl_reject_handshake on; ssl_session_cache shared:SSL:10m;");

    ck_assert_str_eq(profile->ciphers, "HIGH:!aNULL:!MD5");
    ck_assert(profile->prefer_server_ciphers && profile->reject && !profile->tickets);
    ck_assert_uint_eq(profile->versions, TLS_VERSION_1_3);
    ck_assert_str_eq(profile->groups, "X25519MLKEM768:X25519");
    ck_assert_uint_eq(profile->command_n, 2);
    ck_assert_str_eq(profile->commands[0].name, "Options");
    ck_assert_str_eq(profile->commands[1].name, "Groups");
    ck_assert_str_eq(profile->commands[1].value, "P-256");
    ck_assert_uint_eq(profile->session_timeout, 3600);
    ck_assert_uint_eq(profile->handshake_timeout, 5000);
    ck_assert_ptr_null(profile_with("ssl_ecdh_curve auto;")->groups);
    ck_assert_uint_eq(profile_with("ssl_protocols TLSv1.2; ssl_protocols tlsv1.3;")->versions,
        TLS_VERSION_1_2 | TLS_VERSION_1_3);
}
END_TEST

START_TEST(files_of_verification)
{
    const struct tls_profile *profile = profile_with(
        "ssl_verify_client optional; ssl_verify_depth 3; ssl_client_certificate ca.pem;"
        "ssl_trusted_certificate /etc/t.pem; ssl_crl crl.pem; ssl_dhparam dh.pem;\n"
        "ssl_password_file ca.pem;");

    ck_assert_int_eq(profile->verify, TLS_VERIFY_OPTIONAL);
    ck_assert_uint_eq(profile->verify_depth, 3);
    check_file_is(profile->client_ca, "/ca.pem", "/main:3"); /* line of the password file */
    ck_assert_str_eq(loading.cycle->tls.files[profile->trusted].path, "/etc/t.pem");
    check_file_is(profile->crl, "/crl.pem", "/main:2");
    check_file_is(profile->dhparam, "/dh.pem", "/main:2");
    ck_assert_uint_eq(profile->passwords, profile->client_ca); /* a path is one entry */
    ck_assert_int_eq(
        profile_with("ssl_verify_client optional_no_ca;")->verify, TLS_VERIFY_OPTIONAL_NO_CA);
}
END_TEST

START_TEST(files_lie_beside_the_configuration)
{
    loading.options.prefix = "/elsewhere";
    check_file_is(profile_with("")->pairs[0].key, "/a.key", "/main:1");
}
END_TEST

START_TEST(protocols_of_alpn_are_in_wire_format)
{
    const struct tls_profile *profile = profile_with("ssl_alpn h2 http/1.1;");

    ck_assert_uint_eq(profile->alpn_n, 12);
    ck_assert_mem_eq(profile->alpn, "\2h2\10http/1.1", 12);
}
END_TEST

START_TEST(several_pairs)
{
    const struct tls_profile *profile =
        profile_with("ssl_certificate_key b.key; ssl_certificate b.pem;\n"
                     "ssl_certificate a.pem; ssl_certificate_key c.key;");

    ck_assert_uint_eq(profile->pair_n, 3);
    check_file_is(profile->pairs[1].certificate, "/b.pem", "/main:2");
    check_file_is(profile->pairs[1].key, "/b.key", "/main:2");
    ck_assert_uint_eq(profile->pairs[2].certificate, profile->pairs[0].certificate);
    check_file_is(profile->pairs[2].key, "/c.key", "/main:3");
    ck_assert_uint_eq(loading.cycle->tls.file_n, 5);
    ck_assert_uint_eq(loading.cycle->tls.pair_n, 3);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(profile->pairs[i].number, i);
}
END_TEST

START_TEST(equal_pairs_have_one_number)
{
    const struct tls_profile *list;

    accept_text(&loading,
        BEGIN PAIR "server { listen 1 ssl; ssl_alpn a; } server { listen 2 ssl; ssl_alpn b; }"
                   "server { listen 3 ssl; ssl_certificate_key b.key; ssl_certificate b.pem; }"
                   "server { listen 4 ssl; ssl_password_file x; } }",
        "");
    list = loading.cycle->tls.list;
    ck_assert_uint_eq(loading.cycle->tls.n, 4);
    ck_assert_uint_eq(loading.cycle->tls.pair_n, 3);
    ck_assert_uint_eq(list[0].pairs[0].number, list[1].pairs[0].number);
    ck_assert_uint_ne(list[0].pairs[0].number, list[2].pairs[0].number);
    ck_assert_uint_ne(list[0].pairs[0].number, list[3].pairs[0].number);
    ck_assert_uint_ne(list[2].pairs[0].number, list[3].pairs[0].number);
}
END_TEST

START_TEST(keys_of_tickets)
{
    const struct tls_profile *profile =
        profile_with("ssl_session_ticket_key new.key; ssl_session_ticket_key a.key;");
    const struct tls_profiles *profiles;

    ck_assert_uint_eq(profile->ticket_key_n, 2);
    check_file_is(profile->ticket_keys[0], "/new.key", "/main:2");
    check_file_is(profile->ticket_keys[1], "/a.key", "/main:1");
    accept_text(&loading,
        BEGIN PAIR "ssl_session_ticket_key x; server { listen 1 ssl; }"
                   "server { listen 2 ssl; ssl_session_ticket_key \"\"; }"
                   "server { listen 3 ssl; ssl_session_ticket_key y; } }",
        "");
    profiles = &loading.cycle->tls;
    ck_assert_uint_eq(profiles->n, 3);
    ck_assert_uint_eq(profiles->list[0].ticket_key_n, 1);
    check_file_is(profiles->list[0].ticket_keys[0], "/x", "/main:1");
    ck_assert_uint_eq(profiles->list[1].ticket_key_n, 0);
    ck_assert_uint_eq(profiles->list[2].ticket_key_n, 1);
    check_file_is(profiles->list[2].ticket_keys[0], "/y", "/main:1");
}
END_TEST

START_TEST(responses_of_ocsp)
{
    const struct tls_profile *profile =
        profile_with("ssl_stapling on; ssl_stapling_file a.der; ssl_stapling_file b.der;");

    ck_assert_uint_eq(profile->stapling_file_n, 2);
    check_file_is(profile->stapling_files[0], "/a.der", "/main:2");
    check_file_is(profile->stapling_files[1], "/b.der", "/main:2");
    profile = profile_with("ssl_stapling_file a.der; ssl_stapling_verify on;");
    ck_assert_uint_eq(profile->stapling_file_n, 0); /* stapling is not on */
    accept_text(&loading, SERVER("ssl_stapling on;"),
        "warning: \"ssl_stapling\" ignored, no \"ssl_stapling_file\" is defined, and no OCSP "
        "responder is "
        "asked "
        "in /main:2:1\n");
}
END_TEST

START_TEST(servers_inherit)
{
    accept_text(&loading,
        BEGIN PAIR "ssl_protocols TLSv1.2; ssl_alpn a; ssl_crl x;"
                   "server { listen 1 ssl; } server { listen 2; } server { listen 3 ssl; "
                   "ssl_certificate b.pem; ssl_protocols TLSv1.3; ssl_crl \"\"; } "
                   "server { listen 4 ssl; } }",
        "");
    ck_assert_uint_eq(loading.cycle->tls.n, 2);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_ptr_eq(loading_server(&loading, i)->tls, &loading.cycle->tls.list[i == 2]);
    check_file_is(loading.cycle->tls.list[1].pairs[0].certificate, "/b.pem", "/main:1");
    check_file_is(loading.cycle->tls.list[1].pairs[0].key, "/a.key", "/main:1");
    ck_assert_uint_eq(loading.cycle->tls.list[0].versions, TLS_VERSION_1_2);
    ck_assert_uint_eq(loading.cycle->tls.list[1].versions, TLS_VERSION_1_3);
    check_file_is(loading.cycle->tls.list[0].crl, "/x", "/main:1");
    ck_assert_uint_eq(loading.cycle->tls.list[1].crl, TLS_NO_FILE);
    ck_assert_uint_eq(loading.cycle->tls.list[1].alpn_n, 2);
    for (unsigned i = 0; i < 4; i++)
        ck_assert(loading_binding(&loading, i)->ssl == (i != 1));
}
END_TEST

START_TEST(old_versions_are_left_out)
{
    accept_text(&loading, SERVER("ssl_protocols TLSv1.1 TLSv1 TLSv1.2 TLSv1.3;"),
        "warning: \"ssl_protocols\" leaves out TLSv1, TLSv1.1: only TLSv1.2 and TLSv1.3 are "
        "supported in /main:2:1\n");
    ck_assert_uint_eq(loading.cycle->tls.list[0].versions, TLS_VERSION_1_2 | TLS_VERSION_1_3);
    refuse_text(&loading, SERVER("ssl_protocols SSLv2 SSLv3 TLSv1;"),
        "invalid value \"SSLv2\" in \"ssl_protocols\" directive: only \"TLSv1.2\" and \"TLSv1.3\" "
        "are supported in /main:2:15\n");
}
END_TEST

#define LONGER_64 "0123456789012345678901234567890123456789012345678901234567890123"
#define CACHE                                                                                      \
    "expected \"off\", \"none\", \"builtin\", \"builtin:sessions\" or \"shared:name:size\" with "  \
    "a "                                                                                           \
    "size of at least "
#define CURVES "expected \"auto\", or names of curves with \":\" between them"
#define PATH "expected the path of a file"

START_TEST(values_are_refused)
{
    static const struct {
        const char *name, *value, *message;
    } rows[] = {
        { "ssl_protocols", "TLSv1.4",
            "expected \"TLSv1.2\" or \"TLSv1.3\", did you mean \"TLSv1.2\"?" },
        { "ssl_ecdh_curve", ":X25519", CURVES },
        { "ssl_ecdh_curve", "X25519:", CURVES },
        { "ssl_ecdh_curve", "X25519::P-256", CURVES },
        { "ssl_ecdh_curve", "X25519,P-256", CURVES },
        { "ssl_alpn", LONGER_64 LONGER_64 LONGER_64 LONGER_64,
            "the name of a protocol has 1 to 255 bytes" },
        { "ssl_certificate", "data:x",
            "certificates and keys in the configuration itself are not supported, " PATH },
        { "ssl_certificate_cache", "none", PAIRS },
        { "ssl_certificate_cache", "max=0", "expected a number of at least 1" },
        { "ssl_certificate_cache", "valid=x", "expected a time of at most 1y" },
        { "ssl_certificate_key", "engine:pkcs11:x",
            "keys of engines and stores of OpenSSL are not supported, " PATH },
        { "ssl_certificate_key", "store:x",
            "keys of engines and stores of OpenSSL are not supported, " PATH },
        { "ssl_certificate_key", "data:x",
            "certificates and keys in the configuration itself are not supported, " PATH },
        { "ssl_session_cache", "on", CACHE },
        { "ssl_session_cache", "builtin:x", CACHE },
        { "ssl_session_cache", "shared:x", CACHE },
        { "ssl_session_cache", "shared::1m", CACHE },
        { "ssl_session_cache", "shared:x:1k", CACHE },
        { "ssl_verify_client", "optional_no_caa",
            "expected \"off\", \"on\", \"optional\" or \"optional_no_ca\", did you mean "
            "\"optional_no_ca\"?" },
    };
    char text[1024], expected[1024];

    for (size_t i = 0; i < countof(rows); i++) {
        snprintf(text, sizeof(text), SERVER("%s %s;"), rows[i].name, rows[i].value);
        load(&loading, text);
        ck_assert_ptr_null(loading.cycle);
        snprintf(expected, sizeof(expected), "invalid value \"%s\" in \"%s\" directive: %s",
            rows[i].value, rows[i].name, rows[i].message);
        ck_assert_msg(strncmp(loading.report, expected, strlen(expected)) == 0, "%s: %s", text,
            loading.report);
    }
    profile_with("ssl_session_cache builtin:1000 shared:SSL:32k;");
    profile_with("ssl_session_cache off;");
    refuse_text(&loading, SERVER("ssl_certificate_cache valid=1s;"),
        "\"ssl_certificate_cache\" must have the \"max\" parameter in /main:2:1\n");
    refuse_text(&loading, SERVER("ssl_certificate_cache off max=1;"),
        "invalid value \"max=1\" in \"ssl_certificate_cache\" directive: nothing stands behind "
        "\"off\" in /main:2:27\n");
}
END_TEST

START_TEST(what_belongs_together)
{
    refuse_text(&loading, BEGIN "server { listen 1 ssl; } }",
        "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive in /main:1:37\n");
    refuse_text(&loading, SERVER("ssl_certificate b.pem;"),
        "no \"ssl_certificate_key\" is defined for certificate \"b.pem\" in /main:2:17\n");
    refuse_text(&loading, BEGIN "server { listen 1; ssl_certificate a.pem; } }",
        "no \"ssl_certificate_key\" is defined for certificate \"a.pem\" in /main:1:56\n");
    refuse_text(&loading, SERVER("ssl_verify_client on;"),
        "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client in "
        "/main:2:1\n");
    refuse_text(&loading, SERVER("ssl_verify_client optional; ssl_client_certificate \"\";"),
        "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client in "
        "/main:2:1\n");
    accept_text(&loading, SERVER("ssl_certificate_key b.key;"),
        "warning: \"ssl_certificate_key\" without a certificate, ignored in /main:2:21\n");
    /* a mistake by reason of an earlier mistake is not told */
    refuse_text(&loading, BEGIN "server { listen 1 ssl; ssl_certificate \"\"; } }",
        "invalid value \"\" in \"ssl_certificate\" directive: " PATH " in /main:1:60\n");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, defaults_are_nginx_s);
    tcase_add_test(tcase, paths_have_variables);
    tcase_add_test(tcase, caches_are_inherited);
    tcase_add_loop_test(tcase, the_kernel_seals_where_an_option_says_so, 0, countof(offloads));
    tcase_add_test(tcase, values_are_set);
    tcase_add_test(tcase, files_of_verification);
    tcase_add_test(tcase, files_lie_beside_the_configuration);
    tcase_add_test(tcase, protocols_of_alpn_are_in_wire_format);
    tcase_add_test(tcase, several_pairs);
    tcase_add_test(tcase, equal_pairs_have_one_number);
    tcase_add_test(tcase, keys_of_tickets);
    tcase_add_test(tcase, responses_of_ocsp);
    tcase_add_test(tcase, servers_inherit);
    tcase_add_test(tcase, old_versions_are_left_out);
    tcase_add_test(tcase, values_are_refused);
    tcase_add_test(tcase, what_belongs_together);
}

#else

START_TEST(a_build_without_openssl_refuses_all)
{
    refuse_text(&loading, BEGIN "server { listen 1 ssl; } }",
        "\"ssl\" of \"listen\" needs OpenSSL, which this build of forkbeard lacks in /main:1:37\n");
    refuse_text(&loading, BEGIN "server { listen 1; ssl_certificate a.pem; } }",
        "\"ssl_certificate\" directive of nginx is not supported: OpenSSL is missing in this "
        "build in /main:1:40\n");
    refuse_text(&loading, BEGIN "server { listen 1; return $ssl_protocol; } }",
        "\"ssl_protocol\" variable of nginx is not supported: OpenSSL is missing in this build "
        "in /main:1:47\n");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, a_build_without_openssl_refuses_all);
}

#endif

TEST_MAIN("ssl", add_tests)

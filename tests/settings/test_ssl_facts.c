/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts about handshakes, made by engines and kept by sessions, for variables and PROXY headers;
 * logs of keys. */
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

START_TEST(a_variable_makes_sessions_keep_facts)
{
    static const struct {
        const char *name;
        uint32_t facts;
    } rows[] = {
        { "protocol", 0 },
        { "cipher", 0 },
        { "curve", 0 },
        { "session_reused", 0 },
        { "server_name", 0 },
        { "alpn_protocol", 0 },
        { "session_id", 0 },
        { "client_verify", 0 },
        { "ciphers", TLS_FACT(TLS_FACT_CIPHERS) },
        { "curves", TLS_FACT(TLS_FACT_CURVES) },
        { "sigalg", TLS_FACT(TLS_FACT_SIGNATURE) },
        { "sigalgs", TLS_FACT(TLS_FACT_SIGNATURES) },
        { "client_cert", TLS_FACT_PEER },
        { "client_escaped_cert", TLS_FACT_PEER },
        { "client_raw_cert", TLS_FACT_PEER },
        { "client_fingerprint", TLS_FACT(TLS_FACT_FINGERPRINT) },
        { "client_i_dn", TLS_FACT(TLS_FACT_ISSUER) },
        { "client_s_dn", TLS_FACT(TLS_FACT_SUBJECT) },
        { "client_serial", TLS_FACT(TLS_FACT_SERIAL) },
        { "client_sigalg", TLS_FACT(TLS_FACT_PEER_SIGNATURE) },
        { "client_v_end", TLS_FACT(TLS_FACT_NOT_AFTER) },
        { "client_v_remain", TLS_FACT(TLS_FACT_EXPIRY) },
        { "client_v_start", TLS_FACT(TLS_FACT_NOT_BEFORE) },
    };
    char text[512];

    for (size_t i = 0; i < countof(rows); i++) {
        snprintf(text, sizeof(text), BEGIN "server { listen 1 ssl; " PAIR " return $ssl_%s; } }",
            rows[i].name);
        accept_text(&loading, text, "");
        ck_assert(loading_server(&loading, 0)->keeps_tls);
        ck_assert_uint_eq(loading_server(&loading, 0)->tls->facts, rows[i].facts);
        ck_assert(
            loading_server(&loading, 0)->keeps_certificate == (rows[i].facts == TLS_FACT_PEER));
    }
    accept_text(&loading,
        BEGIN "server { listen 1 ssl; " PAIR
              " return \"$ssl_client_s_dn $SSL_client_i_dn $ssl_cipher\"; } }",
        "");
    ck_assert_uint_eq(loading_server(&loading, 0)->tls->facts,
        TLS_FACT(TLS_FACT_SUBJECT) | TLS_FACT(TLS_FACT_ISSUER));
    accept_text(&loading, BEGIN "server { listen 1 ssl; " PAIR " return a; } }", "");
    ck_assert(!loading_server(&loading, 0)->keeps_tls);
    ck_assert_uint_eq(loading_server(&loading, 0)->tls->facts, 0);
    accept_text(&loading,
        BEGIN "server { listen 1 ssl; " PAIR " return a; } "
              "server { listen 2; proxy_pass 127.0.0.1:9; proxy_protocol v2; } }",
        "");
    ck_assert(loading_server(&loading, 0)->keeps_tls);
    ck_assert(!loading_server(&loading, 0)->keeps_certificate);
    ck_assert_uint_eq(loading_server(&loading, 0)->tls->facts,
        TLS_FACT(TLS_FACT_COMMON_NAME) | TLS_FACT(TLS_FACT_OWN_KEY) |
            TLS_FACT(TLS_FACT_OWN_ALGORITHM));
    accept_text(&loading,
        BEGIN "proxy_protocol v2 certificate; server { listen 1 ssl; " PAIR
              " proxy_pass 127.0.0.1:9; } }",
        "");
    ck_assert(loading_server(&loading, 0)->keeps_certificate);
    refuse_text(&loading, BEGIN "server { listen 1; return $ssl_ech_status; } }",
        "\"ssl_ech_status\" variable of nginx is not supported: this version has no Encrypted "
        "Client "
        "Hello in /main:1:47\n");
}
END_TEST

#define LOGGED BEGIN "server { listen 1 ssl; " PAIR "\nssl_key_log a.pem; } }"

START_TEST(key_logs)
{
    static const char warning[] = "warning: the keys of all sessions are written to \"a.pem\", "
                                  "with which they can be decrypted in /main:2:13\n";
    const struct tls_profile *profile;
    char both[512];

    accept_text(&loading, LOGGED, warning);
    profile = loading_server(&loading, 0)->tls;
    ck_assert_str_eq(strrchr(loading.cycle->tls.files[*profile->key_log].path, '/'), "/a.pem");
    ck_assert(loading.cycle->tls.files[*profile->key_log].appends);
    ck_assert_uint_ne(*profile->key_log, profile->pairs[0].certificate); /* which is read */
    snprintf(both, sizeof(both),
        "%swarning: no keys of sessions are written to files under \"sandbox strict\"\n", warning);
    accept_text(&loading, LOGGED " sandbox strict;", both);
    ck_assert_ptr_null(loading_server(&loading, 0)->tls->key_log);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, key_logs);
    tcase_add_test(tcase, a_variable_makes_sessions_keep_facts);
}

TEST_MAIN("settings_ssl_facts", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The variables of TLS: what a session keeps of a handshake, and in which form it is shown. A phase
 * of the server stands for the handshake. */
#include "features/ssl/tlvs.h"
#include "net/proxy_protocol.h"
#include "session/tls.h"
#include "support/fixture.h"
#include "support/server_defaults.h"

#include <string.h>

static const char *const names[] = { "ssl_protocol", "ssl_cipher", "ssl_curve",
    "ssl_session_reused", "ssl_server_name", "ssl_alpn_protocol", "ssl_session_id",
    "ssl_client_verify" };
static const char *const texts[] = { "ssl_client_s_dn", "ssl_client_v_remain", "ssl_ciphers",
    "ssl_client_raw_cert", "ssl_client_cert", "ssl_client_escaped_cert" };

static struct tls_test {
    struct fixture *fixture;
    struct arena *arena;
    struct variables variables;
    struct variable *used[countof(names)];
    struct phase_handler before, handshake, after;
    const struct tls_session *session; /* NULL: the handshake fails */
    fb_bytes facts, peer;
    struct variable *used_texts[countof(texts)];
    char text_values[countof(texts)][512];
    uint8_t tlvs[FB_TLVS_MOST];
    uint32_t tlv_n;
    bool passes;
    unsigned logged;
    char early[countof(names)][80], values[countof(names)][80]; /* "-": missing */
} test;

static void note_values(struct fb_conn *conn, char values[countof(names)][80])
{
    for (size_t i = 0; i < countof(names); i++) {
        const struct value *value = variable_value(conn, test.used[i]);

        snprintf(values[i], 80, "%.*s", (int)value->n, value->p);
        if (value->state == VALUE_MISSING)
            strcpy(values[i], "-");
    }
}

static unsigned note_early(struct fb_conn *conn, const void *arg)
{
    (void)arg;
    note_values(conn, test.early);
    return 0;
}

static unsigned shake_hands(struct fb_conn *conn, const void *arg)
{
    (void)arg;
    if (test.session == NULL)
        return STATUS_INTERNAL;
    session_tls_set(conn, &(struct tls_reply) {
                              .session = *test.session,
                              .facts = (uint8_t *)(uintptr_t)test.facts.p,
                              .facts_n = test.facts.n,
                              .peer = (uint8_t *)(uintptr_t)test.peer.p,
                              .peer_n = test.peer.n,
                          });
    if (test.passes && conn->session != NULL)
        session_record_reset(conn->session); /* as on the way to another server */
    return 0;
}

static unsigned note_log(struct fb_conn *conn, const void *arg)
{
    (void)arg;
    test.logged++;
    note_values(conn, test.values);
    test.tlv_n = ssl_tlvs_write(conn, test.tlvs);
    for (size_t i = 0; i < countof(texts); i++) {
        const struct value *value = variable_value(conn, test.used_texts[i]);

        snprintf(test.text_values[i], sizeof(test.text_values[i]), "%.*s",
            value->state == VALUE_MISSING ? 1 : (int)value->n,
            value->state == VALUE_MISSING ? "-" : value->p);
    }
    return 0;
}

static void begin(void)
{
    struct scripted_server *scripted;

    memset(&test, 0, sizeof(test));
    test.arena = arena_create();
    ck_assert_ptr_nonnull(test.arena);
    RB_INIT(&test.variables.all);
    test.variables.tables = variable_tables();
    for (size_t i = 0; i < countof(names); i++) {
        test.used[i] = variables_add(&test.variables, test.arena, names[i], strlen(names[i]));
        ck_assert_ptr_nonnull(test.used[i]);
        ck_assert_ptr_nonnull(test.used[i]->get);
        variables_use(&test.variables, test.used[i], NULL);
    }
    for (size_t i = 0; i < countof(texts); i++) {
        test.used_texts[i] = variables_add(&test.variables, test.arena, texts[i], strlen(texts[i]));
        variables_use(&test.variables, test.used_texts[i], NULL);
    }
    test.handshake = (struct phase_handler) { .phase = PHASE_ACCESS, .run = shake_hands };
    test.before =
        (struct phase_handler) { &test.handshake, .phase = PHASE_PREACCESS, .run = note_early };
    test.after = (struct phase_handler) { .phase = PHASE_LOG, .run = note_log };
    test.fixture = fixture_start_stream(2);
    scripted = &test.fixture->server;
    scripted->script.data = scripted_echo;
    scripted->binding.ssl = true;
    scripted->server.keeps_tls = scripted->server.keeps_certificate = true;
    scripted->server.variables = &test.variables;
    scripted->server.before = &test.before;
    scripted->server.after = &test.after;
}

static void end(void)
{
    scripted_end_sessions(test.fixture);
    fixture_stop(test.fixture);
    arena_destroy(&test.arena);
}

/* Serves a client with a handshake of this result. */
static void serve(const struct tls_session *session)
{
    struct sim_socket *client;

    test.session = session;
    client = scripted_connect(test.fixture);
    fixture_run(test.fixture);
    if (!client->closed)
        sim_end(client);
    fixture_run(test.fixture);
    ck_assert_uint_eq(test.logged, 1);
    test.logged = 0;
    fixture_logged(test.fixture);
}

/* The values of all variables are these, with a blank between. */
static void check_values(char values[countof(names)][80], const char *expected)
{
    char all[1024] = "";

    for (size_t i = 0; i < countof(names); i++) {
        strcat(all, i > 0 ? " " : "");
        strcat(all, values[i]);
    }
    ck_assert_str_eq(all, expected);
}

START_TEST(values_have_nginx_s_forms)
{
    static const struct tls_session full = {
        .version = TLS_1_3,
        .suite = 0x1302,
        .group = 29,
        .verify = TLS_VERIFIED,
        .session_id = { 0x01, 0xfe },
        .session_id_n = 2,
        .alpn = "h2",
        .alpn_n = 2,
        .name = "www.example.com",
        .name_n = 15,
    };
    static const struct tls_session least = { .version = TLS_1_2, .suite = 0xc02f, .resumed = 1 };

    begin();
    serve(&full);
    check_values(test.early, "- - - - - - - -"); /* and asked again */
    check_values(
        test.values, "TLSv1.3 TLS_AES_256_GCM_SHA384 X25519 . www.example.com h2 01fe SUCCESS");
    serve(&least);
    check_values(test.values, "TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256 - r - - - NONE");
    end();
}
END_TEST

START_TEST(a_passed_client_keeps_its_values)
{
    static const struct tls_session session = { .version = TLS_1_3, .name = "a", .name_n = 1 };

    begin();
    test.passes = true;
    serve(&session);
    check_values(test.values, "TLSv1.3 PLAIN - . a - - NONE");
    end();
}
END_TEST

START_TEST(texts_of_any_length_are_kept)
{
    struct tls_session session = {
        .version = TLS_1_3, .suite = 0x1301, .session_id_n = 32, .alpn_n = 255, .name_n = 255
    };

    begin();
    memset(session.session_id, 0xab, sizeof(session.session_id));
    memset(session.alpn, 'a', sizeof(session.alpn));
    memset(session.name, 'n', sizeof(session.name));
    serve(&session);
    ck_assert_uint_eq(strspn(test.values[4], "n"), 79); /* as many as the test notes */
    ck_assert_uint_eq(strspn(test.values[5], "a"), 79);
    ck_assert_str_eq(
        test.values[6], "abababababababababababababababababababababababababababababababab");
    end();
}
END_TEST

START_TEST(groups_have_names_or_numbers)
{
    static const struct {
        uint16_t group;
        const char *name;
    } rows[] = { { 23, "prime256v1" }, { 24, "secp384r1" }, { 30, "X448" }, { 256, "ffdhe2048" },
        { 0x11ec, "0x11ec" }, { 0, "-" } };

    begin();
    for (size_t i = 0; i < countof(rows); i++) {
        const struct tls_session session = { .version = TLS_1_3, .group = rows[i].group };

        serve(&session);
        ck_assert_str_eq(test.values[2], rows[i].name);
    }
    end();
}
END_TEST

START_TEST(a_failed_verification_has_a_reason)
{
    struct tls_session session = { .version = TLS_1_3, .verify = TLS_VERIFY_FAILED };

    begin();
    session.verify_code = 18;
    serve(&session);
    ck_assert_str_eq(test.values[7], "FAILED:self-signed certificate");
    session.verify_code = 4711;
    serve(&session);
    ck_assert_str_eq(test.values[7], "FAILED:error 4711");
    end();
}
END_TEST

/* The days are of the simulated clock. */
START_TEST(texts_of_a_certificate)
{
    static const struct tls_session session = { .version = TLS_1_3 };
    static uint8_t block[TLS_FACTS_MOST], der[50] = { 0xff, 0xef, 0xbe };
    char seconds[32];
    size_t n;

    begin();
    for (int days = -1; days < 3; days++) {
        snprintf(seconds, sizeof(seconds), "%lld",
            (long long)test.fixture->loop->clock.wall_ms / 1000 + days * 86400 + 100);
        n = tls_facts_put(block, 0, TLS_FACT_SUBJECT, "CN=a", 4);
        n = tls_facts_put(block, n, TLS_FACT_EXPIRY, seconds, strlen(seconds));
        test.facts = (fb_bytes) { block, n };
        test.peer = (fb_bytes) { der, sizeof(der) };
        serve(&session);
        snprintf(seconds, sizeof(seconds), "%d", days > 0 ? days : 0);
        ck_assert_str_eq(test.text_values[0], "CN=a");
        ck_assert_str_eq(test.text_values[1], seconds);
        ck_assert_str_eq(test.text_values[2], "-");
    }
    ck_assert_str_eq(test.text_values[3],
        "-----BEGIN CERTIFICATE-----\n"
        "/+++AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\nAAA=\n"
        "-----END CERTIFICATE-----\n");
    ck_assert_str_eq(test.text_values[4],
        "-----BEGIN CERTIFICATE-----\n"
        "\t/+++AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n\tAAA=\n"
        "\t-----END CERTIFICATE-----");
    ck_assert_str_eq(test.text_values[5],
        "-----BEGIN%20CERTIFICATE-----%0A"
        "%2F%2B%2B%2BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA%0AAAA%3D%0A"
        "-----END%20CERTIFICATE-----%0A");
    test.peer.n = 48; /* whole lines */
    serve(&session);
    ck_assert_ptr_nonnull(strstr(test.text_values[3], "AAAA\n-----END"));
    test.facts.n = test.peer.n = 0;
    serve(&session);
    for (size_t i = 0; i < countof(texts); i++)
        ck_assert_str_eq(test.text_values[i], "-");
    end();
}
END_TEST

/* Compares the value of a type; NULL: the type is missing. */
static void has_tlv(fb_bytes tlvs, unsigned type, const char *expected)
{
    fb_bytes value;

    ck_assert(proxy_protocol_find(tlvs, type, &value) == (expected != NULL));
    if (expected == NULL)
        return;
    ck_assert_uint_eq(value.n, strlen(expected));
    ck_assert_mem_eq(value.p, expected, value.n);
}

START_TEST(a_proxy_header_tells_of_tls)
{
    static uint8_t block[TLS_FACTS_MOST], der[TLS_PEER_MOST];
    static char name[300];
    struct tls_session session = { .version = TLS_1_3,
        .suite = 0x1301,
        .verify = TLS_VERIFIED,
        .alpn = "h2",
        .alpn_n = 2,
        .name = "a.example",
        .name_n = 9 };
    fb_bytes tlvs, ssl, parts;
    uint32_t verify;

    begin();
    memset(name, 'n', sizeof(name) - 1);
    for (int i = 0; i < 5; i++) {
        /* verified, resumed, without a certificate, unverified and with a long name, with DER */
        session.resumed = i == 1;
        session.verify = i == 2 ? TLS_VERIFIED_NONE : i == 3 ? TLS_VERIFY_FAILED : TLS_VERIFIED;
        session.verify_code = i == 3 ? 18 : 0;
        test.facts = (fb_bytes) { block, 0 };
        if (i != 2)
            test.facts.n = tls_facts_put(
                block, 0, TLS_FACT_COMMON_NAME, i == 3 ? name : "any", i == 3 ? 299 : 3);
        test.facts.n = tls_facts_put(block, test.facts.n, TLS_FACT_OWN_KEY, "EC256", 5);
        test.facts.n = tls_facts_put(block, test.facts.n, TLS_FACT_OWN_ALGORITHM, "RSA-SHA256", 10);
        test.peer = (fb_bytes) { der, i == 2 ? 0 : sizeof(der) };
        test.fixture->server.server.needs = i == 4 ? FB_NEEDS_CERTIFICATES : 0;
        serve(&session);
        tlvs = (fb_bytes) { test.tlvs, test.tlv_n };
        has_tlv(tlvs, PROXY_PROTOCOL_ALPN, "h2");
        has_tlv(tlvs, PROXY_PROTOCOL_AUTHORITY, "a.example");
        ck_assert(proxy_protocol_find(tlvs, PROXY_PROTOCOL_SSL, &ssl));
        ck_assert_uint_eq(ssl.p[0], i == 2 ? 1 : i == 1 ? 5 : 7);
        ck_assert(proxy_protocol_ssl(ssl, &verify, &parts));
        ck_assert_uint_eq(verify, i == 2 ? 1 : i == 3 ? 18 : 0);
        has_tlv(parts, PROXY_PROTOCOL_SSL_VERSION, "TLSv1.3");
        has_tlv(parts, PROXY_PROTOCOL_SSL_CN, i == 2 || i == 3 ? NULL : "any");
        has_tlv(parts, PROXY_PROTOCOL_SSL_CIPHER, "TLS_AES_128_GCM_SHA256");
        has_tlv(parts, PROXY_PROTOCOL_SSL_SIG_ALG, "RSA-SHA256");
        has_tlv(parts, PROXY_PROTOCOL_SSL_KEY_ALG, "EC256");
        ck_assert(proxy_protocol_find(parts, PROXY_PROTOCOL_SSL_CLIENT_CERT, &ssl) == (i == 4));
        ck_assert(i != 4 || (ssl.n == sizeof(der) && ssl.p + ssl.n == test.tlvs + test.tlv_n));
    }
    end();
}
END_TEST

START_TEST(without_a_handshake_there_is_nothing)
{
    static const struct tls_session session = { .version = TLS_1_3, .suite = 0x1301 };

    begin();
    serve(NULL);
    check_values(test.values, "- - - - - - - -");
    ck_assert_uint_eq(test.tlv_n, 0);
    test.fixture->server.binding.ssl = false;
    test.fixture->server.server.keeps_tls = false; /* no variable is used: nothing is kept */
    serve(&session);
    check_values(test.values, "- - - - - - - -");
    end();
}
END_TEST

START_TEST(without_memory_the_session_ends)
{
    static const struct tls_session session = { .version = TLS_1_3, .suite = 0x1301 };
    struct sim_socket *client;
    unsigned n;

    begin();
    test.session = &session;
    for (n = 0; n < 20; n++) {
        test.fixture->memory.until_failure = n;
        client = scripted_connect(test.fixture);
        fixture_run(test.fixture);
        test.fixture->memory.until_failure = UINT_MAX;
        if (!client->closed)
            break;
        ck_assert_uint_eq(test.fixture->server.record.openings, 0);
        fixture_logged(test.fixture);
    }
    ck_assert_uint_gt(n, 2); /* the session's part, its record, and the copy */
    ck_assert_uint_lt(n, 20);
    fixture_logged(test.fixture);
    end();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, values_have_nginx_s_forms);
    tcase_add_test(tcase, a_passed_client_keeps_its_values);
    tcase_add_test(tcase, texts_of_any_length_are_kept);
    tcase_add_test(tcase, groups_have_names_or_numbers);
    tcase_add_test(tcase, a_failed_verification_has_a_reason);
    tcase_add_test(tcase, texts_of_a_certificate);
    tcase_add_test(tcase, a_proxy_header_tells_of_tls);
    tcase_add_test(tcase, without_a_handshake_there_is_nothing);
    tcase_add_test(tcase, without_memory_the_session_ends);
}

TEST_MAIN("ssl", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates for challenges of ACME: names that clients ask for, and good, missing and bad
 * files. */
#include "support/directory.h"
#include "talk.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define YEAR (365L * 86400)
#define ALPN "\012acme-tls/1"

static struct talk_server server;

static void begin_challenges(void)
{
    talk_open(&server);
    server.profile.challenges = directory;
    server.profile.alpn = (const uint8_t *)ALPN;
    server.profile.alpn_n = sizeof(ALPN) - 1;
    server.profile.tickets = false;
    server.profile.reject = true; /* so that talk_start() adds no pair */
    talk_start(&server);
}

static void end_challenges(void)
{
    talk_close(&server);
}

/* Writes DIRECTORY/FILE with a certificate for the name, and its key or another (not NULL). */
static void write_pair(const char *file, const char *name, const EVP_PKEY *key)
{
    struct identity made = certificates_make(name, IDENTITY_EC, NULL, 0, YEAR);
    char path[512];
    FILE *to;

    snprintf(path, sizeof(path), "%s/%s", directory, file);
    to = fopen(path, "w");
    ck_assert_ptr_nonnull(to);
    ck_assert_int_eq(PEM_write_X509(to, made.certificate), 1);
    ck_assert_int_eq(
        PEM_write_PrivateKey(to, key != NULL ? key : made.key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(to);
    certificates_free(&made);
}

/* Makes a handshake of a client that asks for the name; NULL: none. */
static void ask(struct talk *talk, const char *name, int version)
{
    SSL_CTX *client = talk_client(version, version);

    ck_assert_int_eq(SSL_CTX_set_alpn_protos(client, (const uint8_t *)ALPN, sizeof(ALPN) - 1), 0);
    talk_begin(talk, &server, client);
    if (name != NULL)
        ck_assert_int_eq(SSL_set_tlsext_host_name(talk->client, name), 1);
    talk_run(talk);
    SSL_CTX_free(client);
}

/* Fails unless a client that asks for the name gets the certificate of `expected`. */
static void expect_answer(const char *name, const char *expected, int version)
{
    struct talk talk;
    char common[64] = "";
    X509 *seen;

    ask(&talk, name, version);
    ck_assert_msg(talk.step == TLS_DONE, "%s: %s", name, talk.reply.text);
    seen = SSL_get0_peer_certificate(talk.client);
    X509_NAME_get_text_by_NID(X509_get_subject_name(seen), NID_commonName, common, sizeof(common));
    ck_assert_str_eq(common, expected);
    ck_assert_uint_eq(talk.reply.session.alpn_n, sizeof(ALPN) - 2);
    ck_assert_mem_eq(talk.reply.session.alpn, &ALPN[1], sizeof(ALPN) - 2);
    ck_assert_uint_eq(talk.reply.session.awaits_tickets, 0);
    ck_assert_int_eq(SSL_SESSION_has_ticket(SSL_get0_session(talk.client)), 0);
    talk_prove(&talk);
    talk_end(&talk);
}

/* Fails unless a client that asks for the name gets an alert, and the text says why. */
static void expect_refusal(const char *name, const char *why)
{
    struct talk talk;

    ask(&talk, name, TLS1_3_VERSION);
    ck_assert_int_eq(talk.step, TLS_FAILED);
    ck_assert_msg(strstr(talk.reply.text, why) != NULL, "%s", talk.reply.text);
    ck_assert_uint_ge(talk.reply.out_n, 7);
    ck_assert_uint_eq(talk.reply.out[0], TLS_ALERT);
    ck_assert_uint_eq(talk.reply.out[6], TLS_UNRECOGNIZED_NAME);
    talk_end(&talk);
}

START_TEST(a_name_has_its_certificate)
{
    const int version = _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;

    begin_challenges();
    write_pair("one.example.pem", "one", NULL);
    write_pair("a_b-c.example.pem", "two", NULL);
    write_pair("7.2.0.192.in-addr.arpa.pem", "address", NULL);
    expect_answer("one.example", "one", version);
    expect_answer("ONE.Example", "one", version);
    expect_answer("a_b-c.example", "two", version);
    expect_answer("7.2.0.192.in-addr.arpa", "address", version);
    end_challenges();
}
END_TEST

/* No file is kept, since a hook makes a new file each time. */
START_TEST(each_client_has_the_file_of_the_time)
{
    char path[512];

    begin_challenges();
    expect_refusal("soon.example", "no challenge for \"soon.example\": open() failed (2: ");
    write_pair("soon.example.pem", "first", NULL);
    expect_answer("soon.example", "first", TLS1_3_VERSION);
    write_pair("soon.example.pem", "second", NULL);
    expect_answer("soon.example", "second", TLS1_3_VERSION);
    snprintf(path, sizeof(path), "%s/soon.example.pem", directory);
    unlink(path);
    expect_refusal("soon.example", "open() failed (2: ");
    end_challenges();
}
END_TEST

START_TEST(other_names_are_not_looked_for)
{
    static char longest[TLS_NAME_MOST + 1];
    static const char *const names[] = { ".one.example", "..", "a..b", "in/one.example", "/etc",
        "one.example*", "one example", "one\n", "\xc3\xa4.example", "%6f", "[::1]" };
    char path[512];

    begin_challenges();
    snprintf(path, sizeof(path), "%s/in", directory);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    write_pair(".one.example.pem", "hidden", NULL);
    write_pair("in/one.example.pem", "deeper", NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        expect_refusal(names[i], "no challenge without the name of a host");
    expect_refusal(NULL, "no challenge without the name of a host");
    memset(longest, 'a', TLS_NAME_MOST);
    expect_refusal(longest, "no challenge for \"aaaaa");
    end_challenges();
}
END_TEST

START_TEST(bad_files_are_refused)
{
    char path[512];

    begin_challenges();
    snprintf(path, sizeof(path), "%s/directory.example.pem", directory);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    expect_refusal("directory.example", "(21: Is a directory)");
    snprintf(path, sizeof(path), "%s/fifo.example.pem", directory);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_refusal("fifo.example", "(22: Invalid argument)");
    certificates_write("alone.example.pem", identities.ec.certificate, NULL);
    expect_refusal("alone.example", "PEM_read_bio_PrivateKey() failed (SSL: ");
    certificates_write_key("key.example.pem", identities.ec.key, NULL);
    expect_refusal("key.example", "PEM_read_bio_X509_AUX() failed (SSL: ");
    write_pair("other.example.pem", "other", identities.ec.key);
    expect_refusal("other.example", "SSL_use_PrivateKey() failed (SSL: ");
    end_challenges();
}
END_TEST

/* A client with a second hello, after the worker has read protocols in the first. */
START_TEST(a_client_without_the_protocol_fails)
{
    SSL_CTX *client = talk_client(TLS1_3_VERSION, TLS1_3_VERSION);
    struct talk talk;

    begin_challenges();
    write_pair("one.example.pem", "one", NULL);
    ck_assert_int_eq(SSL_CTX_set_alpn_protos(client, (const uint8_t *)"\2h2", 3), 0);
    talk_begin(&talk, &server, client);
    ck_assert_int_eq(SSL_set_tlsext_host_name(talk.client, "one.example"), 1);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_FAILED);
    talk_end(&talk);
    SSL_CTX_free(client);
    end_challenges();
}
END_TEST

static void add_tests(TCase *tcase)
{
    talk_add(tcase);
    tcase_add_loop_test(tcase, a_name_has_its_certificate, 0, 2);
    tcase_add_test(tcase, each_client_has_the_file_of_the_time);
    tcase_add_test(tcase, other_names_are_not_looked_for);
    tcase_add_test(tcase, bad_files_are_refused);
    tcase_add_test(tcase, a_client_without_the_protocol_fails);
}

TEST_MAIN("challenge", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that change under an engine of OpenSSL: swaps, refusals with their line, handshakes under
 * way, lists of trust, and the lines about the end of certificates. */
#include "support/directory.h"
#include "talk.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DAY 86400

/* Certificates of a common name; at first "it.pem" and "it.key" have the first of them. */
static struct identity first, second;

static void write_pair(const struct identity *identity)
{
    certificates_write("it.pem", identity->certificate, NULL);
    certificates_write_key("it.key", identity->key, NULL);
}

static void start(struct talk_server *server)
{
    first = certificates_make("it.example", IDENTITY_EC, &identities.ca, 0, 90 * DAY);
    second = certificates_make("it.example", IDENTITY_EC, &identities.ca, 0, 91 * DAY);
    write_pair(&first);
    talk_open(server);
    talk_pair(server, "it.pem", "it.key");
    talk_start(server);
}

static void finish(struct talk_server *server)
{
    talk_close(server);
    certificates_free(&first);
    certificates_free(&second);
}

static const char *refresh(struct talk_server *server)
{
    engine_openssl.refresh(server->engine, &server->log.log);
    return memory_log_take(&server->log);
}

/* Whether the next handshake is with the identity's certificate. */
static bool serves(struct talk_server *server, const struct identity *identity)
{
    SSL_CTX *client = talk_client(TLS1_2_VERSION, TLS1_3_VERSION);
    struct talk talk;
    bool same;

    talk_begin(&talk, server, client);
    talk_run(&talk);
    if (talk.step != TLS_DONE)
        ck_abort_msg("the handshake has failed: %s", talk.reply.text);
    same = X509_cmp(SSL_get0_peer_certificate(talk.client), identity->certificate) == 0;
    talk_prove(&talk);
    talk_end(&talk);
    SSL_CTX_free(client);
    return same;
}

/* Fails unless the text is a single line with the parts. */
static void one_line(const char *text, const char *begin, const char *middle)
{
    const char *end = strchr(text, '\n');

    if (strncmp(text, begin, strlen(begin)) != 0 || strstr(text, middle) == NULL || end == NULL ||
        end[1] != '\0')
        ck_abort_msg("no single line \"%s\" with \"%s\": %s", begin, middle, text);
}

static void one_swap(const char *text)
{
    one_line(text, "t: [notice] certificate \"", "it.pem\" was replaced, valid until 20");
}

static const char *path_to(const char *name)
{
    static char paths[2][256];
    static unsigned next;
    char *path = paths[next++ % 2];

    snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
    return path;
}

/* Puts a new file in the place of `name`, as rename() does. */
static void move_to(const char *from, const char *name)
{
    ck_assert_int_eq(rename(path_to(from), path_to(name)), 0);
}

START_TEST(a_new_pair_is_served)
{
    struct talk_server server;

    start(&server);
    ck_assert_str_eq(refresh(&server), "");
    ck_assert(serves(&server, &first));
    write_pair(&second);
    ck_assert(serves(&server, &first)); /* not before refresh() */
    one_swap(refresh(&server));
    ck_assert(serves(&server, &second));
    ck_assert_str_eq(refresh(&server), "");
    /* new files with equal bytes are no change */
    certificates_write("other.pem", second.certificate, NULL);
    move_to("other.pem", "it.pem");
    ck_assert_str_eq(refresh(&server), "");
    certificates_write("other.pem", first.certificate, NULL);
    certificates_write_key("other.key", first.key, NULL);
    move_to("other.key", "it.key");
    move_to("other.pem", "it.pem");
    one_swap(refresh(&server));
    ck_assert(serves(&server, &first));
    finish(&server);
}
END_TEST

START_TEST(half_a_pair_is_refused_until_the_other_half_comes)
{
    struct talk_server server;
    const char *text;

    for (int key_first = 0; key_first < 2; key_first++) {
        start(&server);
        if (key_first)
            certificates_write_key("it.key", second.key, NULL);
        else
            certificates_write("it.pem", second.certificate, NULL);
        text = refresh(&server);
        one_line(text, "t: [error] cannot load certificate key \"", "it.key\" of \"");
        ck_assert_ptr_nonnull(strstr(text, "it.pem\": SSL_use_PrivateKey() failed (SSL: "));
        ck_assert_ptr_nonnull(strstr(text, ") in test.conf:2; what was loaded before is used\n"));
        ck_assert(serves(&server, &first));
        ck_assert_str_eq(refresh(&server), ""); /* told once */
        write_pair(&second);
        one_swap(refresh(&server));
        ck_assert(serves(&server, &second));
        finish(&server);
    }
}
END_TEST

START_TEST(half_written_and_removed_files_are_refused)
{
    struct talk_server server;
    struct stat status;
    const char *path = path_to("it.pem");

    start(&server);
    certificates_write("it.pem", second.certificate, NULL);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(truncate(path, status.st_size / 2), 0);
    one_line(refresh(&server), "t: [error] cannot load certificate \"", "it.pem\": PEM_read_bio_");
    ck_assert(serves(&server, &first));
    ck_assert_int_eq(unlink(path), 0);
    one_line(refresh(&server), "t: [error] cannot load certificate \"",
        "it.pem\": open() failed (2: No such file or directory) in test.conf:2; what was");
    ck_assert(serves(&server, &first));
    certificates_write("it.pem", first.certificate, NULL);
    ck_assert_str_eq(refresh(&server), ""); /* served all the time */
    write_pair(&second);
    one_swap(refresh(&server));
    ck_assert(serves(&server, &second));
    finish(&server);
}
END_TEST

START_TEST(a_new_type_of_key_replaces_the_old)
{
    struct talk_server server;
    SSL_CTX *client = talk_client(TLS1_3_VERSION, TLS1_3_VERSION);
    struct talk talk;

    start(&server);
    write_pair(&identities.rsa);
    one_swap(refresh(&server));
    ck_assert(serves(&server, &identities.rsa));
    SSL_CTX_set1_sigalgs_list(client, "ecdsa_secp256r1_sha256");
    talk_begin(&talk, &server, client);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_FAILED);
    talk_end(&talk);
    SSL_CTX_free(client);
    finish(&server);
}
END_TEST

START_TEST(a_handshake_under_way_ends_with_the_old_pair)
{
    struct talk_server server;
    SSL_CTX *client = talk_client(TLS1_2_VERSION, TLS1_3_VERSION);
    struct talk talk;

    start(&server);
    talk_begin(&talk, &server, client);
    talk.feeds = 1;
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_MORE);
    write_pair(&second);
    one_swap(refresh(&server));
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    ck_assert_int_eq(X509_cmp(SSL_get0_peer_certificate(talk.client), first.certificate), 0);
    talk_prove(&talk);
    talk_end(&talk);
    ck_assert(serves(&server, &second));
    SSL_CTX_free(client);
    finish(&server);
}
END_TEST

START_TEST(sessions_are_resumed_over_a_swap)
{
    struct talk_server server;
    SSL_CTX *client = talk_client(_i, _i);
    SSL_SESSION *session;
    struct talk talk;

    start(&server);
    talk_begin(&talk, &server, client);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    talk_prove(&talk);
    session = SSL_get1_session(talk.client);
    talk_end(&talk);
    write_pair(&second);
    one_swap(refresh(&server));
    talk_begin(&talk, &server, client);
    SSL_set_session(talk.client, session);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    ck_assert_uint_eq(talk.reply.session.resumed, 1);
    talk_prove(&talk);
    talk_end(&talk);
    SSL_SESSION_free(session);
    SSL_CTX_free(client);
    finish(&server);
}
END_TEST

START_TEST(keys_of_tickets_change)
{
    struct talk_server server;
    uint32_t key;

    certificates_write_key("ticket.key", identities.ec.key, NULL);
    ck_assert_int_eq(truncate(path_to("ticket.key"), 80), 0);
    talk_open(&server);
    key = talk_file(&server, "ticket.key");
    server.profile.ticket_keys = &key;
    server.profile.ticket_key_n = 1;
    talk_start(&server);
    certificates_write_key("ticket.key", identities.rsa.key, NULL);
    one_line(refresh(&server), "t: [error] \"",
        "ticket.key\" must be 48 or 80 bytes in test.conf:2; what was loaded before is used");
    ck_assert(serves(&server, &identities.ec));
    ck_assert_int_eq(truncate(path_to("ticket.key"), 48), 0);
    one_line(refresh(&server), "t: [notice] file \"", "ticket.key\" was replaced");
    ck_assert(serves(&server, &identities.ec));
    talk_close(&server);
}
END_TEST

START_TEST(profiles_change_alone)
{
    struct talk_server server;
    struct tls_profile profiles[3];
    struct tls_pair other;

    first = certificates_make("it.example", IDENTITY_EC, &identities.ca, 0, 90 * DAY);
    second = certificates_make("it.example", IDENTITY_EC, &identities.ca, 0, 91 * DAY);
    write_pair(&first);
    talk_open(&server);
    talk_pair(&server, "it.pem", "it.key");
    other = (struct tls_pair) { talk_file(&server, "ec.pem"), talk_file(&server, "ec.key"),
        server.profiles.pair_n++ };
    profiles[0] = profiles[1] = profiles[2] = server.profile;
    profiles[1].index = 1;
    profiles[1].pairs = &other;
    profiles[2].index = 2;
    server.profiles.list = profiles;
    server.profiles.n = 3;
    talk_start(&server);
    /* two profiles have the pair: one line of a refusal, and one of a swap */
    certificates_write_key("it.key", second.key, NULL);
    certificates_write("ec.pem", identities.ec.certificate, NULL); /* a chain without the CA */
    one_line(strchr(refresh(&server), '\n') + 1, "t: [notice] certificate \"", "ec.pem\" was ");
    write_pair(&second);
    one_swap(refresh(&server));
    ck_assert(serves(&server, &second));
    certificates_write("ec.pem", identities.ec.certificate, identities.ca.certificate, NULL);
    finish(&server);
}
END_TEST

/* Shakes hands as a client with the certificate "ec"; what the verification has come to. */
static enum tls_verified verify(struct talk_server *server)
{
    SSL_CTX *client = talk_client(TLS1_2_VERSION, TLS1_3_VERSION);
    enum tls_verified verified;
    struct talk talk;

    SSL_CTX_use_certificate(client, identities.ec.certificate);
    SSL_CTX_use_PrivateKey(client, identities.ec.key);
    talk_begin(&talk, server, client);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    verified = (enum tls_verified)talk.reply.session.verify;
    talk_end(&talk);
    SSL_CTX_free(client);
    return verified;
}

START_TEST(authorities_and_revoked_certificates_change)
{
    struct identity other = certificates_make("other CA", IDENTITY_EC, NULL, 1, 7200);
    struct talk_server server;

    certificates_write("clients.pem", identities.ca.certificate, NULL);
    certificates_write_crl("it.crl", &identities.ca, NULL);
    talk_open(&server);
    server.profile.verify = TLS_VERIFY_ON;
    server.profile.client_ca = talk_file(&server, "clients.pem");
    server.profile.crl = talk_file(&server, "it.crl");
    talk_start(&server);
    ck_assert_int_eq(verify(&server), TLS_VERIFIED);
    certificates_write_crl("it.crl", &identities.ca, identities.ec.certificate);
    one_line(refresh(&server), "t: [notice] file \"", "it.crl\" was replaced");
    ck_assert_int_eq(verify(&server), TLS_VERIFY_FAILED);
    certificates_write_crl("it.crl", &identities.ca, NULL);
    one_line(refresh(&server), "t: [notice] file \"", "it.crl\" was replaced");
    ck_assert_int_eq(verify(&server), TLS_VERIFIED);
    certificates_write("clients.pem", NULL);
    one_line(refresh(&server), "t: [error] cannot load client CA certificates \"",
        "; what was loaded before is used");
    ck_assert_int_eq(verify(&server), TLS_VERIFIED);
    certificates_write("clients.pem", other.certificate, NULL);
    one_line(refresh(&server), "t: [notice] file \"", "clients.pem\" was replaced");
    ck_assert_int_eq(verify(&server), TLS_VERIFY_FAILED);
    talk_close(&server);
    certificates_free(&other);
}
END_TEST

START_TEST(the_end_of_a_certificate_is_told)
{
    struct identity soon =
        certificates_make("it.example", IDENTITY_EC, &identities.ca, 0, 6 * DAY + 7200);
    struct identity old = certificates_make("it.example", IDENTITY_EC, &identities.ca, 0, 60);
    struct talk_server server;
    const char *text;

    start(&server);
    engine_openssl.remind(server.engine, &server.log.log);
    ck_assert_str_eq(memory_log_take(&server.log), "");
    write_pair(&soon);
    text = refresh(&server);
    ck_assert_ptr_nonnull(strstr(text, "t: [notice] certificate \""));
    ck_assert_ptr_nonnull(strstr(text, " UTC, in 6 days\n"));
    for (int i = 0; i < 2; i++) {
        engine_openssl.remind(server.engine, &server.log.log);
        one_line(memory_log_take(&server.log), "t: [warn] certificate \"", "it.pem\" expires on ");
    }
    write_pair(&old);
    text = refresh(&server);
    ck_assert_ptr_nonnull(strstr(text, "t: [notice] certificate \""));
    ck_assert_ptr_nonnull(strstr(text, "t: [error] certificate \""));
    ck_assert_ptr_nonnull(strstr(text, "it.pem\" has expired on "));
    ck_assert(serves(&server, &old));
    engine_openssl.destroy(server.engine);
    talk_start(&server); /* a start takes it too */
    one_line(memory_log_take(&server.log), "t: [error] certificate \"", "it.pem\" has expired on ");
    finish(&server);
    certificates_free(&soon);
    certificates_free(&old);
}
END_TEST

/* Returns the whole days until the first end of a certificate. */
static int64_t days_left(struct talk_server *server)
{
    uint32_t file;

    return (engine_openssl.first_end(server->engine, &file) - (int64_t)time(NULL)) / DAY;
}

START_TEST(the_certificate_that_ends_first_is_known)
{
    struct identity soon = certificates_make("it.example", IDENTITY_EC, NULL, 0, 3 * DAY + 7200);
    struct talk_server server;

    start(&server);
    ck_assert_int_ge(days_left(&server), 89);
    write_pair(&soon);
    refresh(&server);
    ck_assert_int_eq(days_left(&server), 3);
    write_pair(&second);
    refresh(&server);
    ck_assert_int_ge(days_left(&server), 90);
    certificates_free(&soon);
    finish(&server);
}
END_TEST

START_TEST(a_quiet_engine_leaves_the_lines_to_another)
{
    struct talk_server server;

    start(&server);
    server.ops.quiet = true;
    write_pair(&identities.ec);
    one_line(refresh(&server), "t: [info] certificate \"", "it.pem\" was replaced");
    certificates_write_key("it.key", second.key, NULL);
    one_line(refresh(&server), "t: [info] cannot load certificate key \"", "it.key\" of \"");
    ck_assert(serves(&server, &identities.ec));
    finish(&server);
}
END_TEST

static void add_tests(TCase *tcase)
{
    talk_add(tcase);
    tcase_add_test(tcase, a_new_pair_is_served);
    tcase_add_test(tcase, half_a_pair_is_refused_until_the_other_half_comes);
    tcase_add_test(tcase, half_written_and_removed_files_are_refused);
    tcase_add_test(tcase, a_new_type_of_key_replaces_the_old);
    tcase_add_test(tcase, a_handshake_under_way_ends_with_the_old_pair);
    tcase_add_loop_test(
        tcase, sessions_are_resumed_over_a_swap, TLS1_2_VERSION, TLS1_3_VERSION + 1);
    tcase_add_test(tcase, keys_of_tickets_change);
    tcase_add_test(tcase, profiles_change_alone);
    tcase_add_test(tcase, authorities_and_revoked_certificates_change);
    tcase_add_test(tcase, the_end_of_a_certificate_is_told);
    tcase_add_test(tcase, the_certificate_that_ends_first_is_known);
    tcase_add_test(tcase, a_quiet_engine_leaves_the_lines_to_another);
}

TEST_MAIN("refresh", add_tests)

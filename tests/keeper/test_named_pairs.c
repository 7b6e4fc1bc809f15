/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs whose names come with a handshake: found, refused with a reason, and cached. */
#include "keeper/named_pairs.h"

#include "support/directory.h"
#include "talk.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Names of a certificate and of a key, with the NULs behind them. */
#define NAMES(certificate, key) certificate "\0" key

static const char *directories[] = { directory, directory, directory, directory };
static struct tls_cache rules = { .max = 2, .inactive = 1000, .valid = 200 };

/* Opens a server of so many pairs by names, and no others. */
static void open_named_server(struct talk_server *server, unsigned pair_n)
{
    talk_open(server);
    server->profile.named.directories = directories;
    server->profile.named.n = 2 * pair_n;
}

static void set_names(struct talk_server *server, const char *names, size_t n)
{
    server->names = (fb_bytes) { (const uint8_t *)names, n };
}

#define SET_NAMES(server, names) set_names(server, names, sizeof(names))

/* Shakes hands; returns the reason of a failure. */
static const char *shake(struct talk_server *server, SSL_CTX *client, const char *expected)
{
    static char text[TLS_TEXT], name[64];
    struct talk talk;

    talk_begin(&talk, server, client);
    talk_run(&talk);
    snprintf(text, sizeof(text), "%s", talk.reply.text);
    if (talk.step == TLS_DONE) {
        talk_prove(&talk);
        X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(talk.client)),
            NID_commonName, name, sizeof(name));
        ck_assert_str_eq(name, expected);
    } else {
        ck_assert(talk.reply.severe == (strncmp(text, "cannot", 6) == 0));
    }
    ck_assert_int_eq(talk.step == TLS_DONE, expected != NULL);
    talk_end(&talk);
    return text;
}

START_TEST(a_handshake_names_its_certificate)
{
    struct talk_server server;
    SSL_CTX *client = talk_client(_i, _i);

    open_named_server(&server, 1);
    talk_start(&server);
    SET_NAMES(&server, NAMES("ec.pem", "ec.key"));
    shake(&server, client, "ec.example");
    SET_NAMES(&server, NAMES("rsa.pem", "./rsa.key"));
    shake(&server, client, "rsa.example");
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(pairs_of_two_kinds_of_keys)
{
    struct talk_server server;
    SSL_CTX *client = talk_client(TLS1_2_VERSION, TLS1_2_VERSION);

    /* two pairs by names, then a pair by names beside a pair of the configuration */
    open_named_server(&server, _i == 0 ? 2 : 1);
    if (_i == 1)
        talk_pair(&server, "ec.pem", "ec.key");
    talk_start(&server);
    if (_i == 0)
        SET_NAMES(&server, NAMES("ec.pem", "ec.key") "\0" NAMES("rsa.pem", "rsa.key"));
    else
        SET_NAMES(&server, NAMES("rsa.pem", "rsa.key"));
    SSL_CTX_set_cipher_list(client, "ECDHE-RSA-AES128-GCM-SHA256");
    shake(&server, client, "rsa.example");
    SSL_CTX_set_cipher_list(client, "ECDHE-ECDSA-AES128-GCM-SHA256");
    shake(&server, client, "ec.example");
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(a_failure_names_file_and_reason)
{
    static const struct {
        const char *names;
        size_t n;
        const char *before, *after;
    } rows[] = {
#define ROW(names, ...) { names, sizeof(names), __VA_ARGS__ }
        ROW(NAMES("none.pem", "ec.key"), "cannot load certificate \"",
            "/none.pem\": open() failed (2: No such file or directory)"),
        ROW(NAMES("ec.pem", "none.key"), "cannot load certificate key \"",
            "/none.key\": open() failed (2: No such file or directory)"),
        ROW(NAMES("", ""), "cannot load certificate \"", "/\": the path lies outside"),
        ROW(NAMES("../ec.pem", "ec.key"), "cannot load certificate \"",
            "/../ec.pem\": \"..\" is refused"),
        ROW(NAMES("/etc/passwd", "ec.key"), "cannot load certificate \"",
            "/etc/passwd\": the path lies outside"),
        ROW(NAMES("ec.key", "ec.key"), "cannot load certificate \"",
            "/ec.key\": PEM_read_bio_X509_AUX() failed (SSL:"),
        ROW(NAMES("ec.pem", "ec.pem"), "cannot load certificate key \"",
            "/ec.pem\": PEM_read_bio_PrivateKey() failed (SSL:"),
        ROW(NAMES("ec.pem", "rsa.key"), "cannot load certificate key \"",
            "/rsa.key\": X509_check_private_key() failed (SSL:"),
        /* what no worker of ours sends */
        ROW("ec.pem", "the handshake names more or fewer certificates", ""),
        ROW("ec.pem\0ec.key\0", "the handshake names more or fewer certificates", ""),
#undef ROW
    };
    struct talk_server server;
    SSL_CTX *client = talk_client(TLS1_2_VERSION, TLS1_3_VERSION);

    open_named_server(&server, 1);
    talk_start(&server);
    for (size_t i = 0; i < countof(rows); i++) {
        const char *text;

        set_names(&server, rows[i].names, rows[i].n);
        text = shake(&server, client, NULL);
        ck_assert_msg(strncmp(text, rows[i].before, strlen(rows[i].before)) == 0, "%s", text);
        ck_assert_msg(strstr(text, rows[i].after) != NULL, "%s", text);
    }
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

/* The file of passwords is the configuration's, and is opened by the master. */
START_TEST(passwords_decrypt_named_keys)
{
    struct talk_server server;
    SSL_CTX *client = talk_client(TLS1_3_VERSION, TLS1_3_VERSION);
    char path[128];
    FILE *file;

    certificates_write_key("secret.key", identities.ec.key, "second");
    snprintf(path, sizeof(path), "%s/words", directory);
    file = fopen(path, "we");
    fputs("first\nsecond\n", file);
    fclose(file);
    open_named_server(&server, 1);
    server.profile.passwords = talk_file(&server, "words");
    talk_start(&server);
    SET_NAMES(&server, NAMES("ec.pem", "secret.key"));
    shake(&server, client, "ec.example");
    file = fopen(path, "we");
    fputs("other\n", file);
    fclose(file);
    engine_openssl.refresh(server.engine, &server.log.log);
    ck_assert_ptr_nonnull(strstr(shake(&server, client, NULL), "PEM_read_bio_PrivateKey() failed"));
    unlink(path);
    engine_openssl.refresh(server.engine, &server.log.log);
    ck_assert_ptr_nonnull(strstr(memory_log_take(&server.log), "cannot load passwords"));
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

/* No certificate is needed to resume, but a session is no other certificate's. */
START_TEST(sessions_are_of_their_names)
{
    struct talk_server server;
    SSL_CTX *client = talk_client(TLS1_3_VERSION, TLS1_3_VERSION);
    SSL_SESSION *session;
    struct talk talk;

    certificates_write("gone.pem", identities.ec.certificate, NULL);
    open_named_server(&server, 1);
    talk_start(&server);
    SET_NAMES(&server, NAMES("gone.pem", "ec.key"));
    talk_begin(&talk, &server, client);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    talk_prove(&talk);
    session = SSL_get1_session(talk.client);
    talk_end(&talk);
    for (unsigned i = 0; i < 2; i++) {
        char path[128];

        snprintf(path, sizeof(path), "%s/gone.pem", directory);
        if (i == 0)
            ck_assert_int_eq(unlink(path), 0);
        else
            SET_NAMES(&server, NAMES("ec.pem", "ec.key"));
        talk_begin(&talk, &server, client);
        SSL_set_session(talk.client, session);
        talk_run(&talk);
        ck_assert_msg(talk.step == TLS_DONE, "%s", talk.reply.text);
        ck_assert_uint_eq(talk.reply.session.resumed, i == 0);
        talk_end(&talk);
    }
    SSL_SESSION_free(session);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

/* ---- The cache ---- */

static struct talk_server host;
static struct pem_files files;
static struct named_pairs pairs;
static char why[TLS_TEXT];

static void open_cache(void)
{
    open_named_server(&host, 1);
    host.profile.named.cache = &rules;
    host.profiles.cache_n = 1;
    files = (struct pem_files) { .opener = &host.ops, .profiles = &host.profiles, .outcome = "" };
    pairs = (struct named_pairs) { .pem = NULL };
    ck_assert_int_eq(named_pairs_open(&pairs, &files, &host.log.log), 0);
}

static void close_cache(void)
{
    named_pairs_close(&pairs);
    talk_close(&host);
}

/* Returns the key of the pair, another object after each reading; NULL: the pair cannot be had. */
static const EVP_PKEY *found_at(uint64_t now, const char *names)
{
    const struct pair *pair = named_pairs_find(&pairs, &host.profile, 0, names, now, why);

    return pair != NULL ? pair->key : NULL;
}

START_TEST(a_cached_pair_is_read_once)
{
    const char *names = NAMES("it.pem", "it.key");
    const EVP_PKEY *first, *second;

    certificates_write("it.pem", identities.ec.certificate, NULL);
    certificates_write_key("it.key", identities.ec.key, NULL);
    open_cache();
    first = found_at(5000, names);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_eq(found_at(5200, names), first);
    /* no longer valid, but the same files */
    ck_assert_ptr_eq(found_at(5401, names), first);
    certificates_write("it.pem", identities.rsa.certificate, NULL);
    certificates_write_key("it.key", identities.rsa.key, NULL);
    ck_assert_ptr_eq(found_at(5500, names), first);
    second = found_at(5602, names);
    ck_assert_ptr_nonnull(second);
    ck_assert(EVP_PKEY_is_a(second, "RSA"));
    ck_assert_uint_eq(pairs.caches[0].n, 1);
    /* a file that has gone is noticed when the pair is not valid any more */
    certificates_write("it.pem", identities.ec.certificate, NULL);
    ck_assert_ptr_eq(found_at(5802, names), second);
    ck_assert_ptr_null(found_at(5803, names));
    ck_assert_ptr_nonnull(strstr(why, "X509_check_private_key() failed"));
    ck_assert_uint_eq(pairs.caches[0].n, 0);
    close_cache();
}
END_TEST

START_TEST(a_cache_has_limits)
{
    const char *const names[] = { NAMES("ec.pem", "ec.key"), NAMES("rsa.pem", "rsa.key"),
        NAMES("./ec.pem", "ec.key") };

    open_cache();
    for (unsigned i = 0; i < countof(names); i++)
        ck_assert_ptr_nonnull(found_at(5000 + i, names[i]));
    ck_assert_uint_eq(pairs.caches[0].n, 2); /* the first has gone */
    ck_assert_ptr_nonnull(found_at(6001, names[2]));
    ck_assert_uint_eq(pairs.caches[0].n, 2); /* the older pair is inactive a second after its use */
    ck_assert_ptr_nonnull(found_at(6002, names[2]));
    ck_assert_uint_eq(pairs.caches[0].n, 1);
    ck_assert_ptr_nonnull(found_at(7003, names[0]));
    ck_assert_uint_eq(pairs.caches[0].n, 1);
    close_cache();
}
END_TEST

static void add_tests(TCase *tcase)
{
    talk_add(tcase);
    tcase_add_loop_test(
        tcase, a_handshake_names_its_certificate, TLS1_2_VERSION, TLS1_3_VERSION + 1);
    tcase_add_loop_test(tcase, pairs_of_two_kinds_of_keys, 0, 2);
    tcase_add_test(tcase, a_failure_names_file_and_reason);
    tcase_add_test(tcase, passwords_decrypt_named_keys);
    tcase_add_test(tcase, sessions_are_of_their_names);
    tcase_add_test(tcase, a_cached_pair_is_read_once);
    tcase_add_test(tcase, a_cache_has_limits);
}

TEST_MAIN("named_pairs", add_tests)

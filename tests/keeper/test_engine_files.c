/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles, as the engine of OpenSSL takes them: certificates and keys, each mistake with its line,
 * ciphers, groups, and commands of ssl_conf_command. */
#include "support/directory.h"
#include "talk.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void write_text(const char *name, const char *text)
{
    char path[128];
    FILE *to;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    to = fopen(path, "w");
    ck_assert_ptr_nonnull(to);
    fputs(text, to);
    ck_assert_int_eq(fclose(to), 0);
}

/* Whether the lines are one, which is "[emerg] BEFORE PATH-OF-FILE AFTER". */
static void one_line(const char *lines, const char *before, const char *file, const char *after)
{
    char expected[1024];

    snprintf(
        expected, sizeof(expected), "t: [emerg] %s \"%s/%s\"%s\n", before, directory, file, after);
    ck_assert_str_eq(lines, expected);
}

/* The one line about the pair. */
static const char *pair_mistake(
    struct talk_server *server, const char *certificate, const char *key)
{
    talk_open(server);
    talk_pair(server, certificate, key);
    return talk_mistakes(server);
}

START_TEST(bad_certificates_and_keys)
{
    struct talk_server server;
    const char *lines;
    char path[128];

    write_text("text.pem", "no certificate\n");
    write_text("empty.pem", "");
    write_text("half.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
    snprintf(path, sizeof(path), "%s/directory.pem", directory);
    ck_assert_int_eq(mkdir(path, 0700), 0);

    lines = pair_mistake(&server, "none.pem", "ec.key");
    one_line(lines, "cannot load certificate", "none.pem",
        ": open() failed (2: No such file or directory) in test.conf:2");
    talk_close(&server);
    lines = pair_mistake(&server, "directory.pem", "ec.key");
    one_line(lines, "cannot load certificate", "directory.pem",
        ": open() of a file of at most 16 MiB failed (21: Is a directory) in test.conf:2");
    talk_close(&server);
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "text.pem" : "empty.pem";

        lines = pair_mistake(&server, name, "ec.key");
        one_line(lines, "cannot load certificate", name,
            ": PEM_read_bio_X509_AUX() failed (SSL: error:0480006C:PEM routines::no start line"
            ":Expecting: TRUSTED CERTIFICATE) in test.conf:2");
        talk_close(&server);
    }
    lines = pair_mistake(&server, "half.pem", "ec.key");
    ck_assert_ptr_nonnull(strstr(lines, "half.pem\": PEM_read_bio_X509_AUX() failed (SSL: "));
    talk_close(&server);
    lines = pair_mistake(&server, "ec.pem", "none.key");
    one_line(lines, "cannot load certificate key", "none.key",
        ": open() failed (2: No such file or directory) in test.conf:2");
    talk_close(&server);
    lines = pair_mistake(&server, "ec.pem", "text.pem");
    ck_assert_ptr_nonnull(strstr(lines, "text.pem\": PEM_read_bio_PrivateKey() failed (SSL: "));
    talk_close(&server);
}
END_TEST

START_TEST(a_key_has_to_be_the_certificates)
{
    struct identity other = certificates_make("other", IDENTITY_EC, NULL, 0, 7200);
    struct talk_server server;
    char after[512];

    certificates_write_key("other.key", other.key, NULL);
    snprintf(after, sizeof(after),
        " of \"%s/ec.pem\": SSL_use_PrivateKey() failed (SSL: error:05800074:x509 certificate "
        "routines::key values mismatch) in test.conf:2",
        directory);
    one_line(pair_mistake(&server, "ec.pem", "other.key"), "cannot load certificate key",
        "other.key", after);
    talk_close(&server);
    ck_assert_ptr_nonnull(strstr(pair_mistake(&server, "ec.pem", "rsa.key"), "key type mismatch)"));
    talk_close(&server);
    certificates_free(&other);
}
END_TEST

START_TEST(encrypted_keys_have_passwords)
{
    static const struct {
        const char *passwords;
        bool fits;
    } cases[] = { { "secret\n", true }, { "wrong\r\nsecret\r\nother", true },
        { "a\nb\nsecret", true }, { "wrong\n", false }, { "", false }, { NULL, false } };
    struct talk_server server;
    SSL_CTX *client = talk_client(TLS1_2_VERSION, TLS1_3_VERSION);
    struct talk talk;

    certificates_write_key("locked.key", identities.ec.key, "secret");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        talk_open(&server);
        talk_pair(&server, "ec.pem", "locked.key");
        if (cases[i].passwords != NULL) {
            write_text("passwords", cases[i].passwords);
            server.profile.passwords = talk_file(&server, "passwords");
        }
        if (cases[i].fits) {
            talk_start(&server);
            talk_through(&talk, &server, client);
        } else {
            ck_assert_ptr_nonnull(strstr(
                talk_mistakes(&server), "locked.key\": PEM_read_bio_PrivateKey() failed (SSL: "));
        }
        talk_close(&server);
    }
    SSL_CTX_free(client);
}
END_TEST

static unsigned count_lines(const char *lines)
{
    unsigned n = 0;

    for (; *lines != '\0'; lines++)
        n += *lines == '\n';
    return n;
}

START_TEST(all_mistakes_are_logged_once)
{
    struct talk_server server;
    struct tls_profile profiles[2];
    const char *lines;

    talk_open(&server);
    talk_pair(&server, "none.pem", "ec.key");
    talk_pair(&server, "rsa.pem", "none.key");
    server.profile.ciphers = "AES128-SHA";
    server.profile.groups = "X25519:curve:P-256";
    profiles[0] = profiles[1] = server.profile;
    profiles[1].ciphers = "NONE-AT-ALL";
    profiles[1].at = "test.conf:9";
    server.profiles.list = profiles;
    server.profiles.n = 2;
    lines = talk_mistakes(&server);
    ck_assert_uint_eq(count_lines(lines), 5);
    ck_assert_ptr_nonnull(strstr(lines, "none.pem\": open() failed"));
    ck_assert_ptr_nonnull(strstr(lines, "none.key\": open() failed"));
    ck_assert_ptr_nonnull(strstr(lines, "\"ssl_ecdh_curve\" has \"curve\", which OpenSSL "));
    ck_assert_ptr_nonnull(strstr(lines, "does not know in test.conf:1\n"));
    ck_assert_ptr_nonnull(strstr(lines, "does not know in test.conf:9\n"));
    ck_assert_ptr_nonnull(strstr(lines,
        "SSL_CTX_set_cipher_list(\"NONE-AT-ALL\") failed (SSL: error:0A0000B9:SSL routines::no "
        "cipher match) in test.conf:9\n"));
    talk_close(&server);
}
END_TEST

START_TEST(the_chain_of_the_file_is_sent)
{
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(TLS1_2_VERSION, TLS1_3_VERSION);

    talk_open(&server);
    talk_start(&server);
    talk_begin(&talk, &server, client);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    ck_assert_int_eq(sk_X509_num(SSL_get_peer_cert_chain(talk.client)), 2);
    talk_end(&talk);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

START_TEST(ciphers_are_what_records_have)
{
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(TLS1_2_VERSION, TLS1_2_VERSION);

    talk_open(&server);
    server.profile.ciphers = "AES128-SHA:AES128-GCM-SHA256:ECDHE-ECDSA-AES128-SHA256";
    ck_assert_ptr_nonnull(strstr(talk_mistakes(&server),
        "no cipher suite of TLS 1.2 is left of \"AES128-SHA:AES128-GCM-SHA256:"));
    server.profile.versions = TLS_VERSION_1_3;
    talk_start(&server);
    talk_close(&server);

    talk_open(&server);
    server.profile.ciphers = "ALL:!aNULL";
    talk_start(&server);
    SSL_CTX_set_cipher_list(client, "ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES128-CCM");
    talk_begin(&talk, &server, client);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_FAILED);
    ck_assert_str_eq(talk.reply.text,
        "SSL_do_handshake() failed (SSL: error:0A0000C1:SSL routines::no shared cipher)");
    talk_end(&talk);
    SSL_CTX_free(client);
    talk_close(&server);
}
END_TEST

static const char *command_mistake(struct talk_server *server, const char *name, const char *value)
{
    struct tls_command command = { .name = name, .value = value };

    talk_open(server);
    server->profile.commands = &command;
    server->profile.command_n = 1;
    return talk_mistakes(server);
}

START_TEST(commands_that_cannot_be_are_refused)
{
    static const struct tls_command refused[] = {
        { "options", "-SessionTicket,+clientrenegotiation" }, { "Options", "ClientRenegotiation" },
        { "Options", "Compression" }, { "VerifyMode", "Require" }, { "PrivateKey", "/x" },
        { "ClientCAFile", "/x" }, { "RecordPadding", "100" }
    };
    struct talk_server server;
    const char *lines;

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        lines = command_mistake(&server, refused[i].name, refused[i].value);
        ck_assert_uint_eq(count_lines(lines), 1);
        ck_assert_ptr_nonnull(strstr(lines, "is not possible: "));
        ck_assert_ptr_nonnull(strstr(lines, refused[i].value));
        talk_close(&server);
    }
    lines = command_mistake(&server, "NoSuch", "x");
    ck_assert_ptr_nonnull(strstr(lines, "SSL_CONF_cmd(\"NoSuch\", \"x\") failed (SSL: "));
    talk_close(&server);
}
END_TEST

START_TEST(commands_leave_a_version)
{
    static const struct tls_command refused[] = { { "MaxProtocol", "TLSv1.1" },
        { "Protocol", "-TLSv1.2,-TLSv1.3" }, { "Protocol", "-ALL" } };
    struct talk_server server;
    const char *lines;

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        lines = command_mistake(&server, refused[i].name, refused[i].value);
        ck_assert_uint_eq(count_lines(lines), 1);
        ck_assert_ptr_nonnull(strstr(lines, "leaves neither TLSv1.2 nor TLSv1.3"));
        talk_close(&server);
    }
}
END_TEST

/* Starts with two commands and shakes hands; the step. */
static enum tls_step run_commands(const char *name, const char *value, int version, uint16_t *suite)
{
    struct tls_command commands[] = { { "Options", "KTLS,PrioritizeChaCha" }, { name, value } };
    struct talk_server server;
    struct talk talk;
    SSL_CTX *client = talk_client(version, version);

    SSL_CTX_set_security_level(client, 0); /* for TLS 1.1 */
    talk_open(&server);
    server.profile.commands = commands;
    server.profile.command_n = 2;
    talk_start(&server);
    talk_begin(&talk, &server, client);
    talk_run(&talk);
    if (talk.step == TLS_DONE)
        talk_prove(&talk);
    *suite = talk.reply.session.suite;
    talk_end(&talk);
    SSL_CTX_free(client);
    talk_close(&server);
    return talk.step;
}

START_TEST(commands_set_what_records_have)
{
    uint16_t suite;

    ck_assert_int_eq(run_commands("MinProtocol", "TLSv1", TLS1_2_VERSION, &suite), TLS_DONE);
    ck_assert_int_eq(run_commands("MinProtocol", "TLSv1", TLS1_1_VERSION, &suite), TLS_FAILED);
    ck_assert_int_eq(run_commands("MinProtocol", "TLSv1.3", TLS1_2_VERSION, &suite), TLS_FAILED);
    ck_assert_int_eq(
        run_commands("Ciphersuites", "TLS_AES_128_CCM_SHA256:TLS_CHACHA20_POLY1305_SHA256",
            TLS1_3_VERSION, &suite),
        TLS_DONE);
    ck_assert_uint_eq(suite, 0x1303);
    ck_assert_int_eq(run_commands("CipherString", "ECDHE-ECDSA-AES256-GCM-SHA384:@SECLEVEL=1",
                         TLS1_2_VERSION, &suite),
        TLS_DONE);
    ck_assert_uint_eq(suite, 0xc02c);
    ck_assert_int_eq(run_commands("NumTickets", "3", TLS1_3_VERSION, &suite), TLS_DONE);
}
END_TEST

START_TEST(bad_dhparam)
{
    struct talk_server server;

    write_text("dh.pem", "no parameters\n");
    talk_open(&server);
    server.profile.dhparam = talk_file(&server, "dh.pem");
    ck_assert_ptr_nonnull(
        strstr(talk_mistakes(&server), "dh.pem\": PEM_read_bio_Parameters() failed (SSL: "));
    talk_close(&server);
}
END_TEST

static void add_tests(TCase *tcase)
{
    talk_add(tcase);
    tcase_add_test(tcase, bad_certificates_and_keys);
    tcase_add_test(tcase, a_key_has_to_be_the_certificates);
    tcase_add_test(tcase, encrypted_keys_have_passwords);
    tcase_add_test(tcase, all_mistakes_are_logged_once);
    tcase_add_test(tcase, the_chain_of_the_file_is_sent);
    tcase_add_test(tcase, ciphers_are_what_records_have);
    tcase_add_test(tcase, commands_that_cannot_be_are_refused);
    tcase_add_test(tcase, commands_leave_a_version);
    tcase_add_test(tcase, commands_set_what_records_have);
    tcase_add_test(tcase, bad_dhparam);
}

TEST_MAIN("engine_files", add_tests)

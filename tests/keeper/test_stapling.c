/* SPDX-License-Identifier: BSD-2-Clause */
/* Responses of OCSP from files: certificates and clients with a response, files without a response,
 * and changed files. */
#include "support/directory.h"
#include "talk.h"

#include <openssl/ocsp.h>
#include <stdio.h>
#include <string.h>

#define LOOP_VERSION (_i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION)

static uint32_t stapling_files[2];

/* Opens a server with certificates of both kinds and these files of responses. */
static void open_stapling(struct talk_server *server, const char *first, const char *second)
{
    talk_open(server);
    talk_pair(server, "ec.pem", "ec.key");
    talk_pair(server, "rsa.pem", "rsa.key");
    server->profile.stapling_files = stapling_files;
    for (const char *name = first; name != NULL; name = name == first ? second : NULL)
        stapling_files[server->profile.stapling_file_n++] = talk_file(server, name);
}

/* Returns the bytes of the response to a client that takes this kind of certificate, and asks for
 * the status unless `file` is NULL; 0: no response. Compares the bytes with the file's, unless
 * "". */
static size_t stapled(struct talk_server *server, int version, const char *kind, const char *file)
{
    SSL_CTX *client = talk_client(version, version);
    uint8_t bytes[4096];
    const unsigned char *p;
    struct talk talk;
    long n;

    ck_assert_int_eq(SSL_CTX_set1_sigalgs_list(client, kind), 1);
    talk_begin(&talk, server, client);
    if (file != NULL)
        SSL_set_tlsext_status_type(talk.client, TLSEXT_STATUSTYPE_ocsp);
    talk_run(&talk);
    ck_assert_int_eq(talk.step, TLS_DONE);
    talk_prove(&talk);
    n = SSL_get_tlsext_status_ocsp_resp(talk.client, &p);
    if (n > 0 && file[0] != '\0') {
        char path[256];
        FILE *from;

        snprintf(path, sizeof(path), "%s/%s", directory, file);
        from = fopen(path, "r");
        ck_assert_ptr_nonnull(from);
        ck_assert_uint_eq(fread(bytes, 1, sizeof(bytes), from), (size_t)n);
        fclose(from);
        ck_assert_mem_eq(bytes, p, (size_t)n);
    }
    talk_end(&talk);
    SSL_CTX_free(client);
    return n > 0 ? (size_t)n : 0;
}

START_TEST(a_response_is_sent_for_its_certificate)
{
    struct talk_server server;

    certificates_write_ocsp("ec.der", &identities.ca, identities.ec.certificate, 7200);
    certificates_write_ocsp("rsa.der", &identities.ca, identities.rsa.certificate, 7200);
    open_stapling(&server, "ec.der", NULL);
    talk_start(&server);
    ck_assert_uint_gt(stapled(&server, LOOP_VERSION, "ECDSA+SHA256", "ec.der"), 0);
    ck_assert_uint_eq(stapled(&server, LOOP_VERSION, "ECDSA+SHA256", NULL), 0); /* not asked for */
    ck_assert_uint_eq(stapled(&server, LOOP_VERSION, "RSA-PSS+SHA256", "rsa.der"), 0);
    talk_close(&server);
    open_stapling(&server, "ec.der", "rsa.der");
    talk_start(&server);
    ck_assert_uint_gt(stapled(&server, LOOP_VERSION, "ECDSA+SHA256", "ec.der"), 0);
    ck_assert_uint_gt(stapled(&server, LOOP_VERSION, "RSA-PSS+SHA256", "rsa.der"), 0);
    talk_close(&server);
}
END_TEST

/* Serial numbers are each authority's own. */
START_TEST(a_response_of_another_authority_is_not_sent)
{
    struct identity authority = certificates_make("other ca", IDENTITY_EC, NULL, 1, 7200),
                    theirs = certificates_make("ec.example", IDENTITY_EC, &authority, 0, 7200);
    struct talk_server server;

    X509_set_serialNumber(theirs.certificate, X509_get_serialNumber(identities.ec.certificate));
    certificates_write_ocsp("theirs.der", &authority, theirs.certificate, 7200);
    certificates_write_ocsp("ec.der", &identities.ca, identities.ec.certificate, 7200);
    open_stapling(&server, "theirs.der", "ec.der");
    talk_start(&server);
    ck_assert_uint_gt(stapled(&server, LOOP_VERSION, "ECDSA+SHA256", "ec.der"), 0);
    talk_close(&server);
    certificates_free(&theirs);
    certificates_free(&authority);
}
END_TEST

START_TEST(files_without_a_response_are_refused)
{
    struct talk_server server;
    const char *lines;

    open_stapling(&server, "ec.pem", "none.der");
    lines = talk_mistakes(&server);
    ck_assert_ptr_nonnull(strstr(lines, "t: [emerg] cannot load OCSP response \""));
    ck_assert_ptr_nonnull(strstr(lines, "/ec.pem\": d2i_OCSP_RESPONSE() failed (SSL: error:"));
    ck_assert_ptr_nonnull(strstr(lines, "/none.der\": open() failed (2: No such file"));
    talk_close(&server);
}
END_TEST

START_TEST(a_refusal_of_a_responder_is_refused)
{
    struct talk_server server;
    char path[256];
    FILE *to;

    snprintf(path, sizeof(path), "%s/later.der", directory);
    to = fopen(path, "w");
    fwrite("\x30\x03\x0a\x01\x03", 1, 5, to); /* try later */
    fclose(to);
    open_stapling(&server, "later.der", NULL);
    ck_assert_ptr_nonnull(
        strstr(talk_mistakes(&server), "later.der\": OCSP_response_get1_basic() failed (SSL: "));
    talk_close(&server);
}
END_TEST

START_TEST(an_old_response_is_not_sent)
{
    struct talk_server server;

    certificates_write_ocsp("old.der", &identities.ca, identities.ec.certificate, 60);
    open_stapling(&server, "old.der", NULL);
    server.engine = engine_openssl.create(&server.ops, &server.log.log);
    ck_assert_ptr_nonnull(server.engine);
    ck_assert_ptr_nonnull(strstr(
        memory_log_take(&server.log), "old.der\" is out of date, and not sent to clients\n"));
    ck_assert_uint_eq(stapled(&server, TLS1_3_VERSION, "ECDSA+SHA256", "old.der"), 0);
    /* a newer response is sent without a reload, and a bad file changes nothing */
    certificates_write_ocsp("old.der", &identities.ca, identities.ec.certificate, 7200);
    engine_openssl.refresh(server.engine, &server.log.log);
    ck_assert_ptr_nonnull(strstr(memory_log_take(&server.log), "old.der\" was replaced\n"));
    ck_assert_uint_gt(stapled(&server, TLS1_3_VERSION, "ECDSA+SHA256", "old.der"), 0);
    certificates_write("old.der", identities.ec.certificate, NULL);
    engine_openssl.refresh(server.engine, &server.log.log);
    ck_assert_ptr_nonnull(strstr(memory_log_take(&server.log), "; what was loaded before is used"));
    ck_assert_uint_gt(stapled(&server, TLS1_3_VERSION, "ECDSA+SHA256", ""), 0);
    talk_close(&server);
}
END_TEST

static void add_tests(TCase *tcase)
{
    talk_add(tcase);
    tcase_add_loop_test(tcase, a_response_is_sent_for_its_certificate, 0, 2);
    tcase_add_loop_test(tcase, a_response_of_another_authority_is_not_sent, 0, 2);
    tcase_add_test(tcase, files_without_a_response_are_refused);
    tcase_add_test(tcase, a_refusal_of_a_responder_is_refused);
    tcase_add_test(tcase, an_old_response_is_not_sent);
}

TEST_MAIN("stapling", add_tests)

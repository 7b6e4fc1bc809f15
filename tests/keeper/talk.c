/* SPDX-License-Identifier: BSD-2-Clause */
/* An engine of OpenSSL and clients of libssl in memory: see talk.h. */
#include "talk.h"

#include "support/directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define YEAR (365L * 86400)

struct talk_identities identities;

static void make_identities(void)
{
    identities.ca = certificates_make("test CA", IDENTITY_EC, NULL, 1, YEAR);
    identities.ec = certificates_make("ec.example", IDENTITY_EC, &identities.ca, 0, YEAR);
    identities.rsa = certificates_make("rsa.example", IDENTITY_RSA, &identities.ca, 0, YEAR);
    certificates_write("ca.pem", identities.ca.certificate, NULL);
    certificates_write("ec.pem", identities.ec.certificate, identities.ca.certificate, NULL);
    certificates_write("rsa.pem", identities.rsa.certificate, NULL);
    certificates_write_key("ec.key", identities.ec.key, NULL);
    certificates_write_key("rsa.key", identities.rsa.key, NULL);
}

static void free_identities(void)
{
    certificates_free(&identities.ca);
    certificates_free(&identities.ec);
    certificates_free(&identities.rsa);
}

void talk_add(TCase *tcase)
{
    directory_add(tcase);
    tcase_add_unchecked_fixture(tcase, make_identities, free_identities);
}

static int open_file(struct tls_files *files, uint32_t index)
{
    const struct tls_file *file = &files->profiles->files[index];

    ck_assert_uint_lt(index, files->profiles->file_n);
    return open(
        file->path, O_CLOEXEC | (file->appends ? O_WRONLY | O_APPEND | O_CREAT : O_RDONLY), 0600);
}

void talk_open(struct talk_server *server)
{
    *server = (struct talk_server){
        .ops = { .open = open_file, .profiles = &server->profiles, .tried = UINT_MAX },
        .profiles = { .list = &server->profile, .n = 1, .files = server->files },
        .profile = {
            .at = "test.conf:1",
            .pairs = server->pairs,
            .versions = TLS_VERSION_1_2 | TLS_VERSION_1_3,
            .verify_depth = 1,
            .client_ca = TLS_NO_FILE,
            .trusted = TLS_NO_FILE,
            .crl = TLS_NO_FILE,
            .dhparam = TLS_NO_FILE,
            .passwords = TLS_NO_FILE,
            .tickets = true,
            .session_timeout = 300,
        },
    };
    memory_log_open(&server->log, LEVEL_INFO);
}

uint32_t talk_file(struct talk_server *server, const char *name)
{
    uint32_t index = server->profiles.file_n++;

    ck_assert_uint_lt(index, TALK_FILES);
    snprintf(server->paths[index], sizeof(server->paths[index]), "%s/%s", directory, name);
    server->files[index] = (struct tls_file) { .path = server->paths[index], .at = "test.conf:2" };
    return index;
}

void talk_pair(struct talk_server *server, const char *certificate, const char *key)
{
    server->pairs[server->profile.pair_n++] = (struct tls_pair) {
        .certificate = talk_file(server, certificate),
        .key = talk_file(server, key),
        .number = server->profiles.pair_n++,
    };
}

void talk_start(struct talk_server *server)
{
    if (server->profile.role == TLS_SERVER && !server->profile.reject &&
        server->profile.pair_n + server->profile.named.n == 0)
        talk_pair(server, "ec.pem", "ec.key");
    server->engine = engine_openssl.create(&server->ops, &server->log.log);
    if (server->engine == NULL)
        ck_abort_msg("%s", memory_log_take(&server->log));
}

const char *talk_mistakes(struct talk_server *server)
{
    ck_assert_ptr_null(engine_openssl.create(&server->ops, &server->log.log));
    return memory_log_take(&server->log);
}

void talk_close(struct talk_server *server)
{
    if (server->engine != NULL)
        engine_openssl.destroy(server->engine);
    memory_log_close(&server->log);
}

SSL_CTX *talk_client(int least, int most)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    SSL_CTX_set_min_proto_version(ctx, least);
    SSL_CTX_set_max_proto_version(ctx, most);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT);
    return ctx;
}

void talk_begin(struct talk *talk, struct talk_server *server, SSL_CTX *client)
{
    const struct tls_start start = { .role = TLS_SERVER, .profile = 0, .paths = server->names };

    *talk = (struct talk){
        .client = SSL_new(client),
        .to_client = BIO_new(BIO_s_mem()),
        .to_server = BIO_new(BIO_s_mem()),
        .handshake = engine_openssl.begin(server->engine, &start),
        .reply = {
            .out = malloc(TLS_FLIGHT_MOST),
            .out_most = TLS_FLIGHT_MOST,
            .peer = malloc(TLS_PEER_MOST),
            .facts = malloc(TLS_FACTS_MOST),
        },
    };
    ck_assert_ptr_nonnull(talk->handshake);
    SSL_set_bio(talk->client, talk->to_client, talk->to_server);
    SSL_set_connect_state(talk->client);
}

/* Feeds what the client has sent; what does not belong to the handshake stays in to_server. */
static void feed(struct talk *talk)
{
    uint8_t skipped[4096];
    fb_bytes in;
    char *p;

    in.n = (size_t)BIO_get_mem_data(talk->to_server, &p);
    in.p = (uint8_t *)p;
    if (talk->piece > 0 && in.n > talk->piece)
        in.n = talk->piece;
    talk->step = engine_openssl.feed(talk->handshake, in, &talk->reply);
    ck_assert_uint_le(talk->reply.used, in.n);
    for (size_t n = talk->reply.used; n > 0;)
        n -= (size_t)BIO_read(
            talk->to_server, skipped, n < sizeof(skipped) ? (int)n : (int)sizeof(skipped));
    if (talk->reply.out_n > 0)
        BIO_write(talk->to_client, talk->reply.out, (int)talk->reply.out_n);
}

void talk_run(struct talk *talk)
{
    static const char early[] = "early";
    bool connected = false;

    while (talk->step == TLS_MORE) {
        if (!connected && SSL_do_handshake(talk->client) == 1) {
            connected = true;
            if (talk->early)
                ck_assert_int_eq(SSL_write(talk->client, early, sizeof(early)), sizeof(early));
        }
        if (BIO_pending(talk->to_server) == 0)
            break;
        feed(talk);
        if (talk->feeds > 0 && --talk->feeds == 0)
            return;
    }
    /* bytes that came with the end */
    if (!connected)
        SSL_do_handshake(talk->client);
}

static void read_record(struct talk *talk, struct ciphers *ciphers, const char *expected, size_t n)
{
    const struct tls_suite *suite = tls_suite_find(talk->reply.session.suite);
    uint8_t record[TLS_HEADER + TLS_SEALED_MOST];
    struct tls_opened opened;
    enum tls_alert alert;
    int length;

    ck_assert_int_eq(BIO_read(talk->to_server, record, TLS_HEADER), TLS_HEADER);
    length = tls_record_length(record, TLS_HEADER, &alert);
    ck_assert_int_gt(length, TLS_HEADER);
    ck_assert_int_eq(
        BIO_read(talk->to_server, record + TLS_HEADER, length - TLS_HEADER), length - TLS_HEADER);
    ck_assert_int_eq(tls_record_open(ciphers, suite, &talk->reply.session.in, record,
                         (size_t)length, &opened, &alert),
        0);
    ck_assert_int_eq(opened.type, TLS_DATA);
    ck_assert_mem_eq(opened.p, expected, n);
    ck_assert_uint_eq(opened.n, n);
}

void talk_prove(struct talk *talk)
{
    struct tls_session *session = &talk->reply.session;
    const struct tls_suite *suite = tls_suite_find(session->suite);
    struct ciphers *ciphers = ciphers_create();
    const struct iovec piece = { .iov_base = (char[]) { "to client" }, .iov_len = 9 };
    uint8_t record[64];
    char text[16];
    size_t n;

    ck_assert_ptr_nonnull(suite);
    if (session->version == TLS_1_3) {
        ck_assert_int_eq(tls_keys_expand(ciphers, &session->in, suite), 0);
        ck_assert_int_eq(tls_keys_expand(ciphers, &session->out, suite), 0);
    }
    if (talk->early)
        read_record(talk, ciphers, "early", 6);
    for (int i = 0; i < 3; i++) {
        n = tls_record_seal(
            ciphers, suite, &session->out, TLS_DATA, &piece, 1, piece.iov_len, record);
        BIO_write(talk->to_client, record, (int)n);
        ck_assert_int_eq(SSL_read(talk->client, text, sizeof(text)), 9);
        ck_assert_mem_eq(text, "to client", 9);
        ck_assert_int_eq(SSL_write(talk->client, "to server", 9), 9);
        read_record(talk, ciphers, "to server", 9);
    }
    ck_assert_int_eq(BIO_pending(talk->to_server), 0);
    ciphers_destroy(ciphers);
}

void talk_end(struct talk *talk)
{
    engine_openssl.end(talk->handshake);
    /* a client's session is for the next handshake too */
    SSL_set_shutdown(talk->client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(talk->client);
    free(talk->reply.out);
    free(talk->reply.peer);
    free(talk->reply.facts);
}

void talk_through(struct talk *talk, struct talk_server *server, SSL_CTX *client)
{
    talk_begin(talk, server, client);
    talk_run(talk);
    if (talk->step != TLS_DONE)
        ck_abort_msg("the handshake has failed: %s", talk->reply.text);
    talk_prove(talk);
    talk_end(talk);
}

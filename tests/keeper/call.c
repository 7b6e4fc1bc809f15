/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of an engine of OpenSSL, and servers of libssl: see call.h. */
#include "call.h"

#include <string.h>

void call_open(struct talk_server *engine)
{
    talk_open(engine);
    engine->profile.role = TLS_CLIENT;
}

SSL_CTX *call_server(int least, int most)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

    SSL_CTX_set_min_proto_version(ctx, least);
    SSL_CTX_set_max_proto_version(ctx, most);
    SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"test", 4);
    ck_assert_int_eq(SSL_CTX_use_certificate(ctx, identities.ec.certificate), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(ctx, identities.ec.key), 1);
    return ctx;
}

struct tls_start call_start(const char *name)
{
    return (struct tls_start) {
        .role = TLS_CLIENT,
        .name = { (const uint8_t *)name, strlen(name) },
    };
}

void call_begin(
    struct call *call, struct talk_server *engine, SSL_CTX *server, const struct tls_start *start)
{
    *call = (struct call){
        .server = SSL_new(server),
        .to_client = BIO_new(BIO_s_mem()),
        .to_server = BIO_new(BIO_s_mem()),
        .handshake = engine_openssl.begin(engine->engine, start),
        .reply = {
            .out = malloc(TLS_FLIGHT_MOST),
            .out_most = TLS_FLIGHT_MOST,
            .peer = malloc(TLS_PEER_MOST),
        },
        .ciphers = ciphers_create(),
    };
    ck_assert_ptr_nonnull(call->handshake);
    SSL_set_bio(call->server, call->to_server, call->to_client);
    SSL_set_accept_state(call->server);
}

/* Feeds what the server has sent; what does not belong to the handshake stays in to_client. */
static void feed_call(struct call *call)
{
    uint8_t skipped[TLS_FEED_MOST];
    fb_bytes in;
    char *p;

    in.n = (size_t)BIO_get_mem_data(call->to_client, &p);
    in.p = (uint8_t *)p;
    if (call->piece > 0 && in.n > call->piece)
        in.n = call->piece;
    call->step = engine_openssl.feed(call->handshake, in, &call->reply);
    ck_assert_uint_le(call->reply.used, in.n);
    if (call->reply.used > 0)
        BIO_read(call->to_client, skipped, (int)call->reply.used);
    if (call->reply.out_n > 0)
        BIO_write(call->to_server, call->reply.out, (int)call->reply.out_n);
}

void call_run(struct call *call)
{
    do {
        feed_call(call);
        SSL_do_handshake(call->server);
        if (call->feeds > 0 && --call->feeds == 0)
            return;
    } while (call->step == TLS_MORE && BIO_pending(call->to_client) > 0);
}

size_t call_record(struct call *call, uint8_t record[TLS_HEADER + TLS_SEALED_MOST])
{
    enum tls_alert alert;
    int n = BIO_read(call->to_client, record, TLS_HEADER), length;

    if (n <= 0)
        return 0;
    ck_assert_int_eq(n, TLS_HEADER);
    length = tls_record_length(record, TLS_HEADER, &alert);
    ck_assert_int_gt(length, TLS_HEADER);
    ck_assert_int_eq(
        BIO_read(call->to_client, record + TLS_HEADER, length - TLS_HEADER), length - TLS_HEADER);
    return (size_t)length;
}

void call_tickets(struct call *call)
{
    uint8_t record[TLS_HEADER + TLS_SEALED_MOST];
    size_t n;

    ck_assert_uint_eq(call->reply.session.awaits_tickets, 1);
    while ((n = call_record(call, record)) > 0) {
        ck_assert(engine_openssl.ticket(call->handshake, (fb_bytes) { record, n }));
        call->reply.session.in.sequence++;
        call->tickets++;
    }
}

/* Opens the server's next record, and those of tickets before. */
static void read_data(struct call *call, const char *expected, size_t n)
{
    const struct tls_suite *suite = tls_suite_find(call->reply.session.suite);
    uint8_t record[TLS_HEADER + TLS_SEALED_MOST];
    struct tls_opened opened;
    enum tls_alert alert;

    for (;;) {
        size_t length = call_record(call, record);

        ck_assert_uint_gt(length, 0);
        ck_assert_int_eq(tls_record_open(call->ciphers, suite, &call->reply.session.in, record,
                             length, &opened, &alert),
            0);
        if (opened.type != TLS_HANDSHAKE)
            break;
        call->tickets++;
    }
    ck_assert_int_eq(opened.type, TLS_DATA);
    ck_assert_uint_eq(opened.n, n);
    ck_assert_mem_eq(opened.p, expected, n);
}

void call_prove(struct call *call)
{
    struct tls_session *session = &call->reply.session;
    const struct tls_suite *suite = tls_suite_find(session->suite);
    const struct iovec piece = { .iov_base = (char[]) { "to server" }, .iov_len = 9 };
    uint8_t record[64];
    char text[16];
    size_t n;

    ck_assert_ptr_nonnull(suite);
    if (session->version == TLS_1_3) {
        ck_assert_int_eq(tls_keys_expand(call->ciphers, &session->in, suite), 0);
        ck_assert_int_eq(tls_keys_expand(call->ciphers, &session->out, suite), 0);
    }
    for (int i = 0; i < 3; i++) {
        n = tls_record_seal(
            call->ciphers, suite, &session->out, TLS_DATA, &piece, 1, piece.iov_len, record);
        BIO_write(call->to_server, record, (int)n);
        ck_assert_int_eq(SSL_read(call->server, text, sizeof(text)), 9);
        ck_assert_mem_eq(text, "to server", 9);
        ck_assert_int_eq(SSL_write(call->server, "to client", 9), 9);
        read_data(call, "to client", 9);
    }
    ck_assert_int_eq(BIO_pending(call->to_client), 0);
}

void call_end(struct call *call)
{
    engine_openssl.end(call->handshake);
    SSL_set_shutdown(call->server, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(call->server);
    free(call->reply.out);
    free(call->reply.peer);
    ciphers_destroy(call->ciphers);
}

void call_through(
    struct call *call, struct talk_server *engine, SSL_CTX *server, const struct tls_start *start)
{
    call_begin(call, engine, server, start);
    call_run(call);
    if (call->step != TLS_DONE)
        ck_abort_msg("the handshake has failed: %s", call->reply.text);
}

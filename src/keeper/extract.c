/* SPDX-License-Identifier: BSD-2-Clause */
/* Session of a finished handshake of libssl: see extract.h. */
#include "keeper/extract.h"

#include "keeper/groups.h"
#include "keeper/key_log.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>
#include <string.h>

#define MASTER_SECRET 48
#define RANDOM 32
#define KEY_LABEL "key expansion"

/* Reads the secret at the end of a line "LABEL CLIENT-RANDOM SECRET"; the number of bytes, or 0. */
static size_t read_secret(const char *line, uint8_t secret[TLS_SECRET_MOST])
{
    const char *at = strrchr(line, ' ') + 1;
    size_t n = strlen(at) / 2;

    if (n > TLS_SECRET_MOST)
        return 0;
    for (size_t i = 0; i < n; i++)
        secret[i] = (uint8_t)(OPENSSL_hexchar2int((unsigned char)at[2 * i]) << 4 |
                              OPENSSL_hexchar2int((unsigned char)at[2 * i + 1]));
    return n;
}

static void note_secret(const SSL *ssl, const char *line);

/* libssl writes a line for each secret, byte by byte, wherever there is a callback: eight
 * microseconds of a handshake, which the secrets of its own messages need not cost. */
static void switch_key_log(const struct extract *extract, SSL *ssl, bool on)
{
    const struct libssl *lib = extract->lib;

    lib->SSL_CTX_set_keylog_callback(lib->SSL_get_SSL_CTX(ssl), on ? note_secret : NULL);
}

/* libssl's callback for a line of a key log, which has no argument of ours. */
static void note_secret(const SSL *ssl, const char *line)
{
    static const char client[] = "CLIENT_TRAFFIC_SECRET_0 ", server[] = "SERVER_TRAFFIC_SECRET_0 ";
    bool is_client = strncmp(line, client, sizeof(client) - 1) == 0;
    bool is_server = strncmp(line, server, sizeof(server) - 1) == 0;
    struct extract *extract = libssl_ex_data()(ssl, 0);

    if (extract->key_log != NULL)
        key_log_write(extract->key_log, line);
    if (is_client)
        extract->client_n = read_secret(line, extract->client);
    else if (is_server)
        extract->server_n = read_secret(line, extract->server);
}

/* libssl's callback for messages, and for the headers of records. */
static void note_message(
    int sent, int version, int type, const void *message, size_t n, SSL *ssl, void *data)
{
    struct extract *extract = data;

    if (type == SSL3_RT_HEADER && sent == 1 && extract->finished)
        extract->sent++;
    if (type != SSL3_RT_HANDSHAKE || n == 0 || *(const uint8_t *)message != SSL3_MT_FINISHED)
        return;
    extract->finished |= sent == 1;
    /* the secrets of data are made behind the server's Finished */
    if (version == TLS1_3_VERSION && (sent == 1) != extract->is_client) {
        extract->logs = true;
        switch_key_log(extract, ssl, true);
    }
}

void extract_prepare(const struct libssl *lib, SSL_CTX *ctx)
{
    lib->SSL_CTX_set_msg_callback(ctx, note_message);
}

void extract_attach(const struct libssl *lib, SSL *ssl, struct extract *extract)
{
    extract->lib = lib;
    lib->SSL_set_ex_data(ssl, 0, extract);
    lib->SSL_ctrl(ssl, SSL_CTRL_SET_MSG_CALLBACK_ARG, 0, extract);
    if (extract->key_log != NULL)
        switch_key_log(extract, ssl, true);
}

void extract_begin_step(const struct extract *extract, SSL *ssl)
{
    if (extract->logs)
        switch_key_log(extract, ssl, true);
}

void extract_end_step(const struct extract *extract, SSL *ssl)
{
    if (extract->logs && extract->key_log == NULL)
        switch_key_log(extract, ssl, false);
}

/* TLS 1.3: the traffic secrets; what the peer sends begins at 0, for its Finished is under the
 * keys of the handshake. */
static int take_secrets(
    const struct extract *extract, const struct tls_suite *suite, struct tls_session *session)
{
    size_t n = tls_suite_secret_size(suite);

    if (extract->client_n != n || extract->server_n != n || !extract->finished)
        return -1;
    memcpy(extract->is_client ? session->out.secret : session->in.secret, extract->client, n);
    memcpy(extract->is_client ? session->in.secret : session->out.secret, extract->server, n);
    session->in.sequence = 0;
    session->out.sequence = extract->sent;
    return 0;
}

/* Computes n bytes of keys by the pseudo-random function of TLS 1.2. */
static int compute_keys(const struct libssl *lib, SSL *ssl, EVP_KDF *prf,
    const struct tls_suite *suite, uint8_t *out, size_t n)
{
    uint8_t master[MASTER_SECRET], seed[sizeof(KEY_LABEL) - 1 + 2 * RANDOM];
    uint8_t *random = seed + sizeof(KEY_LABEL) - 1;
    const char *hash = suite->hash == TLS_SHA384 ? "SHA384" : "SHA256";
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(prf);
    int status = -1;

    memcpy(seed, KEY_LABEL, sizeof(KEY_LABEL) - 1);
    if (context != NULL &&
        lib->SSL_SESSION_get_master_key(lib->SSL_get_session(ssl), master, sizeof(master)) ==
            sizeof(master) &&
        lib->SSL_get_server_random(ssl, random, RANDOM) == RANDOM &&
        lib->SSL_get_client_random(ssl, random + RANDOM, RANDOM) == RANDOM) {
        OSSL_PARAM params[] = {
            OSSL_PARAM_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)(uintptr_t)hash, 0),
            OSSL_PARAM_octet_string(OSSL_KDF_PARAM_SECRET, master, sizeof(master)),
            OSSL_PARAM_octet_string(OSSL_KDF_PARAM_SEED, seed, sizeof(seed)),
            OSSL_PARAM_END,
        };

        status = EVP_KDF_derive(context, out, n, params) == 1 ? 0 : -1;
    }
    OPENSSL_cleanse(master, sizeof(master));
    EVP_KDF_CTX_free(context);
    return status;
}

/* TLS 1.2: keys and the implicit parts of nonces; record 0 of both sides was the Finished. */
static int derive_keys(const struct libssl *lib, SSL *ssl, const struct extract *extract,
    EVP_KDF *prf, const struct tls_suite *suite, struct tls_session *session)
{
    struct tls_keys *client = extract->is_client ? &session->out : &session->in,
                    *server = extract->is_client ? &session->in : &session->out;
    size_t key_n = cipher_key_size(suite->cipher), iv_n = tls_suite_iv_size(suite);
    uint8_t block[2 * (CIPHER_KEY_MOST + CIPHER_NONCE)];
    const uint8_t *ivs = block + 2 * key_n;

    assert(2 * (key_n + iv_n) <= sizeof(block));
    if (compute_keys(lib, ssl, prf, suite, block, 2 * (key_n + iv_n)) < 0)
        return -1;
    memcpy(client->key, block, key_n);
    memcpy(server->key, block + key_n, key_n);
    memcpy(client->iv, ivs, iv_n);
    memcpy(server->iv, ivs + iv_n, iv_n);
    client->sequence = server->sequence = 1;
    OPENSSL_cleanse(block, sizeof(block));
    return 0;
}

/* The limit that the client has set for records by max_fragment_length (RFC 6066). */
static uint16_t plaintext_limit(const struct libssl *lib, const SSL_SESSION *session)
{
    uint8_t code = lib->SSL_SESSION_get_max_fragment_length(session);

    return code >= TLSEXT_max_fragment_length_512 && code <= TLSEXT_max_fragment_length_4096
               ? (uint16_t)(512 << (code - TLSEXT_max_fragment_length_512))
               : SSL3_RT_MAX_PLAIN_LENGTH;
}

static void note_agreement(const struct libssl *lib, SSL *ssl, struct tls_session *session)
{
    const SSL_SESSION *own = lib->SSL_get_session(ssl);
    const char *name = lib->SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    const unsigned char *alpn;
    const uint8_t *id;
    unsigned n;

    session->group = groups_number(lib->SSL_ctrl(ssl, SSL_CTRL_GET_NEGOTIATED_GROUP, 0, NULL));
    session->resumed = lib->SSL_session_reused(ssl) == 1;
    session->plain_most = plaintext_limit(lib, own);
    id = lib->SSL_SESSION_get_id(own, &n);
    if (n <= sizeof(session->session_id)) {
        memcpy(session->session_id, id, n);
        session->session_id_n = (uint8_t)n;
    }
    lib->SSL_get0_alpn_selected(ssl, &alpn, &n);
    if (n <= sizeof(session->alpn) && n > 0) {
        memcpy(session->alpn, alpn, n);
        session->alpn_n = (uint8_t)n;
    }
    if (name != NULL && strlen(name) <= sizeof(session->name)) {
        session->name_n = (uint8_t)strlen(name);
        memcpy(session->name, name, session->name_n);
    }
    session->verify_code = (int32_t)lib->SSL_get_verify_result(ssl);
    session->verify = session->verify_code == X509_V_OK ? TLS_VERIFIED : TLS_VERIFY_FAILED;
    if (lib->SSL_get0_peer_certificate(ssl) == NULL) {
        session->verify = TLS_VERIFIED_NONE;
        session->verify_code = X509_V_OK;
    }
}

const char *extract_session(const struct libssl *lib, SSL *ssl, const struct extract *extract,
    EVP_KDF *prf, struct tls_session *session)
{
    uint16_t id = lib->SSL_CIPHER_get_protocol_id(lib->SSL_get_current_cipher(ssl));
    const struct tls_suite *suite = tls_suite_find(id);
    int status;

    memset(session, 0, sizeof(*session));
    session->version = (uint16_t)lib->SSL_version(ssl);
    if (suite == NULL || suite->version != session->version)
        return "records lack the cipher suite";
    session->suite = id;
    status = suite->version == TLS_1_3 ? take_secrets(extract, suite, session)
                                       : derive_keys(lib, ssl, extract, prf, suite, session);
    if (status < 0)
        return "no secrets of the session";
    if (lib->SSL_has_pending(ssl) == 1)
        return "bytes behind Finished within its record";
    note_agreement(lib, ssl, session);
    return NULL;
}

void extract_wipe(struct extract *extract)
{
    OPENSSL_cleanse(extract, sizeof(*extract));
}

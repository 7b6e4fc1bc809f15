/* SPDX-License-Identifier: BSD-2-Clause */
/* Ciphers of libcrypto, by EVP: a context for each cipher and direction, and for each hash, so that
 * a record costs no allocation, and neither a record nor a key a look-up by name.
 *
 * Never leaves an error in the library's queue, which an engine in the same process reads. */
#include "tls/cipher_plain.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

/* Pieces up to so many bytes are copied behind each other: a call of the library costs more. */
#define COPIED_MOST 2048

/* The bytes of the longest label with what is around it. */
#define LABEL_MOST 32

enum { OPENS, SEALS, DIRECTIONS };

enum { HASHES = TLS_SHA384 + 1 };

struct cipher_context {
    EVP_CIPHER_CTX *evp; /* NULL: CIPHER_PLAIN, or switched off */
    bool has_key;
    uint8_t key[CIPHER_KEY_MOST]; /* of the last record */
};

struct ciphers {
    struct cipher_context contexts[CIPHERS][DIRECTIONS];
    EVP_MAC_CTX *macs[HASHES]; /* HMAC; keeps the last secret */
};

static const char *const cipher_names[CIPHERS] = {
    [CIPHER_AES_128_GCM] = "AES-128-GCM",
    [CIPHER_AES_256_GCM] = "AES-256-GCM",
    [CIPHER_CHACHA20_POLY1305] = "ChaCha20-Poly1305",
};

bool cipher_is_there(enum cipher cipher)
{
    return cipher < CIPHERS;
}

/* Makes the contexts of a cipher; -1 without memory. */
static int create_contexts(struct cipher_context contexts[DIRECTIONS], const char *name)
{
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, NULL);
    int status = 0;

    for (int seals = OPENS; seals < DIRECTIONS && cipher != NULL; seals++) {
        EVP_CIPHER_CTX *evp = EVP_CIPHER_CTX_new();

        contexts[seals].evp = evp;
        if (evp == NULL || EVP_CipherInit_ex2(evp, cipher, NULL, NULL, seals, NULL) != 1)
            status = -1;
    }
    EVP_CIPHER_free(cipher);
    return status;
}

static int create_macs(EVP_MAC_CTX *macs[HASHES])
{
    static const char *const digests[HASHES] = { [TLS_SHA256] = "SHA256", [TLS_SHA384] = "SHA384" };
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    int status = 0;

    for (int hash = 0; hash < HASHES; hash++) {
        const OSSL_PARAM params[] = {
            OSSL_PARAM_construct_utf8_string(
                OSSL_MAC_PARAM_DIGEST, (char *)(uintptr_t)digests[hash], 0),
            OSSL_PARAM_END,
        };

        macs[hash] = EVP_MAC_CTX_new(hmac);
        if (macs[hash] == NULL || EVP_MAC_CTX_set_params(macs[hash], params) != 1)
            status = -1;
    }
    EVP_MAC_free(hmac);
    return status;
}

struct ciphers *ciphers_create(void)
{
    struct ciphers *ciphers = calloc(1, sizeof(*ciphers));
    int status = 0;

    /* neither openssl.cnf nor the environment decides what a daemon can do */
    if (ciphers == NULL ||
        OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) != 1) {
        free(ciphers);
        return NULL;
    }
    for (int i = CIPHER_PLAIN + 1; i < CIPHERS; i++)
        status |= create_contexts(ciphers->contexts[i], cipher_names[i]);
    status |= create_macs(ciphers->macs);
    ERR_clear_error();
    if (status == 0)
        return ciphers;
    ciphers_destroy(ciphers);
    return NULL;
}

void ciphers_destroy(struct ciphers *ciphers)
{
    if (ciphers == NULL)
        return;
    for (int i = 0; i < CIPHERS; i++)
        for (int seals = OPENS; seals < DIRECTIONS; seals++)
            EVP_CIPHER_CTX_free(ciphers->contexts[i][seals].evp);
    for (int hash = 0; hash < HASHES; hash++)
        EVP_MAC_CTX_free(ciphers->macs[hash]);
    explicit_bzero(ciphers, sizeof(*ciphers));
    free(ciphers);
}

void ciphers_prepare(void)
{
    ciphers_destroy(ciphers_create()); /* functions that were found stay with the library */
}

static int fail_cipher(void)
{
    ERR_clear_error();
    return -1;
}

/* Sets nonce, parameters, and a key unless it is the last record's: its schedule takes as long as a
 * short record. */
static int begin_record(struct cipher_context *context, enum cipher cipher, const uint8_t *key,
    const uint8_t *nonce, const OSSL_PARAM *params)
{
    size_t key_n = cipher_key_size(cipher);
    bool is_set = context->has_key && memcmp(context->key, key, key_n) == 0;

    if (context->evp == NULL)
        return -1;
    context->has_key =
        EVP_CipherInit_ex2(context->evp, NULL, is_set ? NULL : key, nonce, -1, params) == 1;
    if (!context->has_key)
        return -1;
    if (!is_set)
        memcpy(context->key, key, key_n);
    return 0;
}

/* Encrypts to `out`, where n bytes may lie already; returns the end, NULL after a failure. */
static uint8_t *encrypt_bytes(EVP_CIPHER_CTX *evp, const uint8_t *in, size_t n, uint8_t *out)
{
    int done = 0;

    if (n > 0 && EVP_EncryptUpdate(evp, out, &done, in, (int)n) != 1)
        return NULL;
    assert((size_t)done == n); /* of a stream cipher */
    return out + n;
}

/* Encrypts long pieces from their places, and short pieces at `out`. */
static uint8_t *encrypt_pieces(EVP_CIPHER_CTX *evp, const struct iovec *pieces, int piece_n,
    const uint8_t *more, size_t more_n, uint8_t *out)
{
    int from = 0;

    for (int i = 0; i < piece_n && out != NULL; i++) {
        const struct iovec *piece = &pieces[i];
        uint8_t *end;

        if (piece->iov_len <= COPIED_MOST)
            continue;
        end = cipher_plain_gather(pieces + from, i - from, NULL, 0, out);
        out = encrypt_bytes(evp, out, (size_t)(end - out), out);
        if (out != NULL)
            out = encrypt_bytes(evp, piece->iov_base, piece->iov_len, out);
        from = i + 1;
    }
    if (out == NULL)
        return NULL;
    return encrypt_bytes(evp, out,
        (size_t)(cipher_plain_gather(pieces + from, piece_n - from, more, more_n, out) - out), out);
}

int cipher_seal(struct ciphers *ciphers, enum cipher cipher, const uint8_t *key,
    const uint8_t nonce[CIPHER_NONCE], const uint8_t *data, size_t data_n,
    const struct iovec *pieces, int piece_n, const uint8_t *more, size_t more_n, uint8_t *out)
{
    struct cipher_context *context = &ciphers->contexts[cipher][SEALS];
    OSSL_PARAM tag[] = { OSSL_PARAM_END, OSSL_PARAM_END };
    int n;

    if (cipher == CIPHER_PLAIN) {
        cipher_plain_seal(key, nonce, data, data_n, pieces, piece_n, more, more_n, out);
        return 0;
    }
    if (begin_record(context, cipher, key, nonce, NULL) == -1 ||
        EVP_EncryptUpdate(context->evp, NULL, &n, data, (int)data_n) != 1)
        return fail_cipher();
    out = encrypt_pieces(context->evp, pieces, piece_n, more, more_n, out);
    if (out == NULL || EVP_EncryptFinal_ex(context->evp, out, &n) != 1)
        return fail_cipher();
    tag[0] = OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, out, CIPHER_TAG);
    return EVP_CIPHER_CTX_get_params(context->evp, tag) == 1 ? 0 : fail_cipher();
}

int cipher_open(struct ciphers *ciphers, enum cipher cipher, const uint8_t *key,
    const uint8_t nonce[CIPHER_NONCE], const uint8_t *data, size_t data_n, const uint8_t *in,
    size_t n, uint8_t *out)
{
    struct cipher_context *context = &ciphers->contexts[cipher][OPENS];
    OSSL_PARAM tag[] = { OSSL_PARAM_END, OSSL_PARAM_END };
    int done = 0;

    assert(n >= CIPHER_TAG);
    if (cipher == CIPHER_PLAIN)
        return cipher_plain_open(key, nonce, data, data_n, in, n, out);
    n -= CIPHER_TAG;
    tag[0] = OSSL_PARAM_construct_octet_string(
        OSSL_CIPHER_PARAM_AEAD_TAG, (void *)(uintptr_t)(in + n), CIPHER_TAG);
    if (begin_record(context, cipher, key, nonce, tag) == -1 ||
        EVP_DecryptUpdate(context->evp, NULL, &done, data, (int)data_n) != 1 ||
        (n > 0 && EVP_DecryptUpdate(context->evp, out, &done, in, (int)n) != 1) ||
        EVP_DecryptFinal_ex(context->evp, out + n, &done) != 1)
        return fail_cipher();
    return 0;
}

/* Makes what follows the secret in HKDF-Expand-Label: the length of the output, the label and its
 * length, no context, and the number of the first block. Returns the bytes. */
static size_t make_label(const char *label, size_t n, uint8_t info[LABEL_MOST])
{
    static const uint8_t end[] = { 0, 1 };
    static const char prefix[] = { 't', 'l', 's', '1', '3', ' ' };
    size_t label_n = strlen(label);

    assert(n <= UINT8_MAX && 3 + sizeof(prefix) + label_n + sizeof(end) <= LABEL_MOST);
    info[0] = 0;
    info[1] = (uint8_t)n;
    info[2] = (uint8_t)(sizeof(prefix) + label_n);
    memcpy(info + 3, prefix, sizeof(prefix));
    memcpy(info + 3 + sizeof(prefix), label, label_n);
    memcpy(info + 3 + sizeof(prefix) + label_n, end, sizeof(end));
    return 3 + sizeof(prefix) + label_n + sizeof(end);
}

int cipher_derive(struct ciphers *ciphers, enum cipher cipher, enum tls_hash hash,
    const uint8_t *secret, size_t secret_n, const char *label, uint8_t *out, size_t n)
{
    EVP_MAC_CTX *mac = ciphers->macs[hash];
    uint8_t info[LABEL_MOST], block[EVP_MAX_MD_SIZE];
    size_t block_n = 0;

    if (cipher == CIPHER_PLAIN) {
        cipher_plain_derive(secret, secret_n, label, out, n);
        return 0;
    }
    if (EVP_MAC_init(mac, secret, secret_n, NULL) != 1 ||
        EVP_MAC_update(mac, info, make_label(label, n, info)) != 1 ||
        EVP_MAC_final(mac, block, &block_n, sizeof(block)) != 1)
        return fail_cipher();
    assert(n <= block_n); /* no second block */
    memcpy(out, block, n);
    OPENSSL_cleanse(block, sizeof(block));
    return 0;
}

void cipher_digest(const uint8_t *p, size_t n, uint8_t out[CIPHER_DIGEST])
{
    if (EVP_Digest(p, n, out, NULL, EVP_sha256(), NULL) == 1)
        return;
    ERR_clear_error();
    memset(out, 0, CIPHER_DIGEST);
}

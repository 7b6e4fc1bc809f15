/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts about a finished handshake of libssl: see facts.h. */
#include "keeper/facts.h"

#include "base/compiler.h"
#include "keeper/expiry.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <string.h>

/* The longest list of groups of a client that is shown. */
#define FACTS_CURVES_MOST 512

/* Inputs of a text. */
struct facts_source {
    const struct libssl *lib;
    SSL *ssl;
    X509 *peer, *own; /* NULL: none */
};

/* Algorithms of signatures, by IANA's numbers and names, and libcrypto's numbers of the kind of key
 * and of the digest. */
static const struct signature_name {
    uint16_t id;
    const char *name;
    int key, digest;
} signature_names[] = {
    { 0x0201, "rsa_pkcs1_sha1", NID_rsaEncryption, NID_sha1 },
    { 0x0202, "dsa_sha1", NID_dsa, NID_sha1 },
    { 0x0203, "ecdsa_sha1", NID_X9_62_id_ecPublicKey, NID_sha1 },
    { 0x0301, "rsa_pkcs1_sha224", NID_rsaEncryption, NID_sha224 },
    { 0x0302, "dsa_sha224", NID_dsa, NID_sha224 },
    { 0x0303, "ecdsa_sha224", NID_X9_62_id_ecPublicKey, NID_sha224 },
    { 0x0401, "rsa_pkcs1_sha256", NID_rsaEncryption, NID_sha256 },
    { 0x0402, "dsa_sha256", NID_dsa, NID_sha256 },
    { 0x0403, "ecdsa_secp256r1_sha256", NID_X9_62_id_ecPublicKey, NID_sha256 },
    { 0x0501, "rsa_pkcs1_sha384", NID_rsaEncryption, NID_sha384 },
    { 0x0502, "dsa_sha384", NID_dsa, NID_sha384 },
    { 0x0503, "ecdsa_secp384r1_sha384", NID_X9_62_id_ecPublicKey, NID_sha384 },
    { 0x0601, "rsa_pkcs1_sha512", NID_rsaEncryption, NID_sha512 },
    { 0x0602, "dsa_sha512", NID_dsa, NID_sha512 },
    { 0x0603, "ecdsa_secp521r1_sha512", NID_X9_62_id_ecPublicKey, NID_sha512 },
    { 0x0804, "rsa_pss_rsae_sha256", NID_rsassaPss, NID_sha256 },
    { 0x0805, "rsa_pss_rsae_sha384", NID_rsassaPss, NID_sha384 },
    { 0x0806, "rsa_pss_rsae_sha512", NID_rsassaPss, NID_sha512 },
    { 0x0807, "ed25519", NID_ED25519, NID_undef },
    { 0x0808, "ed448", NID_ED448, NID_undef },
    { 0x0809, "rsa_pss_pss_sha256", NID_undef, NID_undef },
    { 0x080a, "rsa_pss_pss_sha384", NID_undef, NID_undef },
    { 0x080b, "rsa_pss_pss_sha512", NID_undef, NID_undef },
    { 0x081a, "ecdsa_brainpoolP256r1tls13_sha256", NID_undef, NID_undef },
    { 0x081b, "ecdsa_brainpoolP384r1tls13_sha384", NID_undef, NID_undef },
    { 0x081c, "ecdsa_brainpoolP512r1tls13_sha512", NID_undef, NID_undef },
    { 0x0904, "mldsa44", NID_undef, NID_undef },
    { 0x0905, "mldsa65", NID_undef, NID_undef },
    { 0x0906, "mldsa87", NID_undef, NID_undef },
};

/* ---- The certificate of the peer ---- */

static void put_subject(const struct facts_source *source, BIO *out)
{
    X509_NAME_print_ex(out, X509_get_subject_name(source->peer), 0, XN_FLAG_RFC2253);
}

static void put_issuer(const struct facts_source *source, BIO *out)
{
    X509_NAME_print_ex(out, X509_get_issuer_name(source->peer), 0, XN_FLAG_RFC2253);
}

static void put_common_name(const struct facts_source *source, BIO *out)
{
    const X509_NAME *name = X509_get_subject_name(source->peer);
    int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1), n;
    unsigned char *text;

    if (at < 0)
        return;
    n = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    if (n < 0)
        return;
    BIO_write(out, text, n);
    OPENSSL_free(text);
}

static void put_serial(const struct facts_source *source, BIO *out)
{
    i2a_ASN1_INTEGER(out, X509_get0_serialNumber(source->peer));
}

static void put_fingerprint(const struct facts_source *source, BIO *out)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    if (X509_digest(source->peer, EVP_sha1(), digest, &n) == 1)
        for (unsigned i = 0; i < n; i++)
            BIO_printf(out, "%02x", digest[i]);
}

static void put_not_before(const struct facts_source *source, BIO *out)
{
    ASN1_TIME_print(out, X509_get0_notBefore(source->peer));
}

static void put_not_after(const struct facts_source *source, BIO *out)
{
    ASN1_TIME_print(out, X509_get0_notAfter(source->peer));
}

static void put_expiry(const struct facts_source *source, BIO *out)
{
    BIO_printf(out, "%lld", (long long)expiry_of(source->peer));
}

/* ---- The own certificate ---- */

/* haproxy's form: "RSA2048", "EC256". */
static void put_own_key(const struct facts_source *source, BIO *out)
{
    EVP_PKEY *key = X509_get0_pubkey(source->own);
    const char *kind = key != NULL ? EVP_PKEY_get0_type_name(key) : NULL;

    if (kind == NULL)
        return;
    BIO_puts(out, kind);
    if (EVP_PKEY_is_a(key, "RSA") || EVP_PKEY_is_a(key, "EC"))
        BIO_printf(out, "%d", EVP_PKEY_get_bits(key));
}

static void put_own_algorithm(const struct facts_source *source, BIO *out)
{
    BIO_puts(out, OBJ_nid2sn(X509_get_signature_nid(source->own)));
}

/* ---- Signatures of the handshake ---- */

/* Keys for RSA-PSS alone have numbers of their own. */
static bool is_pss_key(const X509 *certificate)
{
    EVP_PKEY *key = certificate != NULL ? X509_get0_pubkey(certificate) : NULL;

    return key != NULL && EVP_PKEY_is_a(key, "RSA-PSS");
}

static void put_signature(int key, int digest, const X509 *signer, BIO *out)
{
    for (size_t i = 0; i < countof(signature_names); i++)
        if (signature_names[i].key == key && signature_names[i].digest == digest) {
            const char *name = signature_names[i].name;

            if (key == NID_rsassaPss && is_pss_key(signer))
                BIO_printf(out, "rsa_pss_pss_%s", strrchr(name, '_') + 1);
            else
                BIO_puts(out, name);
            return;
        }
}

static void put_own_signature(const struct facts_source *source, BIO *out)
{
    int key, digest;

    if (source->lib->SSL_get_signature_type_nid(source->ssl, &key) == 1 &&
        source->lib->SSL_ctrl(source->ssl, SSL_CTRL_GET_SIGNATURE_NID, 0, &digest) == 1)
        put_signature(key, digest, source->own, out);
}

static void put_peer_signature(const struct facts_source *source, BIO *out)
{
    int key, digest;

    if (source->lib->SSL_get_peer_signature_type_nid(source->ssl, &key) == 1 &&
        source->lib->SSL_ctrl(source->ssl, SSL_CTRL_GET_PEER_SIGNATURE_NID, 0, &digest) == 1)
        put_signature(key, digest, source->peer, out);
}

/* ---- What the client has offered: names with colons, numbers of unknown ones ---- */

static void put_listed(BIO *out, const char *name, unsigned id, bool first)
{
    if (!first)
        BIO_puts(out, ":");
    if (name != NULL)
        BIO_puts(out, name);
    else
        BIO_printf(out, "0x%04x", id);
}

static void put_ciphers(const struct facts_source *source, BIO *out)
{
    const struct libssl *lib = source->lib;
    const unsigned char *p = NULL;
    long n = lib->SSL_ctrl(source->ssl, SSL_CTRL_GET_RAW_CIPHERLIST, 0, &p);

    for (long i = 0; p != NULL && i + 1 < n; i += 2) {
        const SSL_CIPHER *cipher = lib->SSL_CIPHER_find(source->ssl, p + i);

        put_listed(out, cipher != NULL ? lib->SSL_CIPHER_get_name(cipher) : NULL,
            (unsigned)p[i] << 8 | p[i + 1], i == 0);
    }
}

static void put_curves(const struct facts_source *source, BIO *out)
{
    int nids[FACTS_CURVES_MOST];
    long n = source->lib->SSL_ctrl(source->ssl, SSL_CTRL_GET_GROUPS, 0, NULL);

    if (n <= 0 || n > FACTS_CURVES_MOST)
        return;
    n = source->lib->SSL_ctrl(source->ssl, SSL_CTRL_GET_GROUPS, 0, nids);
    for (long i = 0; i < n; i++)
        put_listed(out, (nids[i] & TLSEXT_nid_unknown) == 0 ? OBJ_nid2sn(nids[i]) : NULL,
            (unsigned)nids[i] & 0xffff, i == 0);
}

static void put_signatures(const struct facts_source *source, BIO *out)
{
    unsigned char key, digest;
    int n = source->lib->SSL_get_sigalgs(source->ssl, -1, NULL, NULL, NULL, NULL, NULL);

    for (int i = 0; i < n; i++) {
        const char *name = NULL;
        unsigned id;

        source->lib->SSL_get_sigalgs(source->ssl, i, NULL, NULL, NULL, &key, &digest);
        id = (unsigned)digest << 8 | key;
        for (size_t k = 0; k < countof(signature_names) && name == NULL; k++)
            name = signature_names[k].id == id ? signature_names[k].name : NULL;
        put_listed(out, name, id, i == 0);
    }
}

/* ---- All of them ---- */

static void (*const fact_writers[TLS_FACTS])(const struct facts_source *source, BIO *out) = {
    [TLS_FACT_SUBJECT] = put_subject,
    [TLS_FACT_ISSUER] = put_issuer,
    [TLS_FACT_COMMON_NAME] = put_common_name,
    [TLS_FACT_SERIAL] = put_serial,
    [TLS_FACT_FINGERPRINT] = put_fingerprint,
    [TLS_FACT_NOT_BEFORE] = put_not_before,
    [TLS_FACT_NOT_AFTER] = put_not_after,
    [TLS_FACT_EXPIRY] = put_expiry,
    [TLS_FACT_OWN_KEY] = put_own_key,
    [TLS_FACT_OWN_ALGORITHM] = put_own_algorithm,
    [TLS_FACT_SIGNATURE] = put_own_signature,
    [TLS_FACT_PEER_SIGNATURE] = put_peer_signature,
    [TLS_FACT_CIPHERS] = put_ciphers,
    [TLS_FACT_CURVES] = put_curves,
    [TLS_FACT_SIGNATURES] = put_signatures,
};

/* Whether the handshake has the certificate that the fact is about. */
static bool has_certificate(const struct facts_source *source, enum tls_fact fact)
{
    if (fact <= TLS_FACT_EXPIRY)
        return source->peer != NULL;
    return (fact != TLS_FACT_OWN_KEY && fact != TLS_FACT_OWN_ALGORITHM) || source->own != NULL;
}

size_t facts_write(const struct libssl *lib, SSL *ssl, uint32_t wanted, uint8_t *block)
{
    struct facts_source source = {
        .lib = lib,
        .ssl = ssl,
        .peer = lib->SSL_get0_peer_certificate(ssl),
        .own = lib->SSL_get_certificate(ssl),
    };
    BIO *out = (wanted & (TLS_FACT_PEER - 1)) != 0 ? BIO_new(BIO_s_mem()) : NULL;
    size_t n = 0;
    char *text;

    for (unsigned fact = 0; out != NULL && fact < TLS_FACTS; fact++)
        if ((wanted & TLS_FACT(fact)) != 0 && has_certificate(&source, (enum tls_fact)fact)) {
            long text_n;

            fact_writers[fact](&source, out);
            text_n = BIO_get_mem_data(out, &text);
            n = tls_facts_put(block, n, (enum tls_fact)fact, text, text_n > 0 ? (size_t)text_n : 0);
            (void)BIO_reset(out);
        }
    BIO_free(out);
    ERR_clear_error();
    return n;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a self-signed certificate by libcrypto: ECDSA with P-256 and SHA-256, for TLS servers
 * alone. Never a CA: clients that trust the certificate trust nothing else by it. No file is
 * written; the buffers of libcrypto that held the key are wiped. */
#include "cli/certificate.h"

#include <assert.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#define SERIAL_BITS 128
/* Clients with slow clocks accept a new certificate too. */
#define CLOCK_SKEW_S 3600

static bool set_subject(X509 *x509, const struct certificate_name *name)
{
    X509_NAME *subject = X509_get_subject_name(x509);

    return X509_NAME_add_entry_by_txt(
               subject, "CN", MBSTRING_ASC, (const unsigned char *)name->text, -1, -1, 0) == 1 &&
           X509_set_issuer_name(x509, subject) == 1;
}

static bool set_serial(X509 *x509)
{
    BIGNUM *serial = BN_new();
    bool set = serial != NULL &&
               BN_rand(serial, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
               BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(x509)) != NULL;

    BN_free(serial);
    return set;
}

static bool add_extension(X509 *x509, int kind, const char *value)
{
    X509_EXTENSION *extension;
    X509V3_CTX context;
    bool added;

    X509V3_set_ctx(&context, x509, x509, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    added = extension != NULL && X509_add_ext(x509, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return added;
}

/* Adds all names as "DNS:example.com,IP:::1": a checked name has no comma. */
static bool add_alternative_names(X509 *x509, const struct certificate_order *order)
{
    BIO *list = BIO_new(BIO_s_mem());
    bool added = list != NULL;
    char *text;

    for (unsigned i = 0; added && i < order->name_n; i++)
        added = BIO_printf(list, "%s%s:%s", i > 0 ? "," : "",
                    order->names[i].is_address ? "IP" : "DNS", order->names[i].text) > 0;
    added = added && BIO_write(list, "", 1) == 1 && BIO_get_mem_data(list, &text) > 0 &&
            add_extension(x509, NID_subject_alt_name, text);
    BIO_free(list);
    return added;
}

/* Fills in and signs the certificate. */
static bool sign_certificate(X509 *x509, EVP_PKEY *key, const struct certificate_order *order)
{
    return X509_set_version(x509, X509_VERSION_3) == 1 && set_serial(x509) &&
           X509_gmtime_adj(X509_getm_notBefore(x509), -CLOCK_SKEW_S) != NULL &&
           X509_time_adj_ex(X509_getm_notAfter(x509), order->days, 0, NULL) != NULL &&
           set_subject(x509, &order->names[0]) && X509_set_pubkey(x509, key) == 1 &&
           add_extension(x509, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(x509, NID_key_usage, "critical,digitalSignature") &&
           add_extension(x509, NID_ext_key_usage, "serverAuth") &&
           add_extension(x509, NID_subject_key_identifier, "hash") &&
           add_alternative_names(x509, order) && X509_sign(x509, key, EVP_sha256()) > 0;
}

/* Returns the text that was written to a memory BIO, to be freed by free(), or NULL. Frees the BIO,
 * which wipes its memory. */
static char *take_bio_text(BIO *bio, bool written)
{
    char *data, *text = NULL;

    if (written) {
        long n = BIO_get_mem_data(bio, &data);

        text = strndup(data, (size_t)n);
    }
    BIO_free(bio);
    return text;
}

static char *certificate_as_pem(const X509 *x509)
{
    BIO *bio = BIO_new(BIO_s_mem());

    return take_bio_text(bio, bio != NULL && PEM_write_bio_X509(bio, x509) == 1);
}

static char *key_as_pem(const EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_mem());

    return take_bio_text(
        bio, bio != NULL && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1);
}

static bool write_fingerprint(const X509 *x509, struct certificate *made)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n;

    if (X509_digest(x509, EVP_sha256(), digest, &n) != 1)
        return false;
    assert(n > 0 && 3 * n < sizeof(made->fingerprint));
    for (unsigned i = 0; i < n; i++)
        snprintf(made->fingerprint + (size_t)3 * i, 4, "%02X:", digest[i]);
    made->fingerprint[3 * n - 1] = '\0';
    return true;
}

int certificate_make(
    const struct certificate_order *order, struct certificate *made, struct log *log)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x509 = X509_new();
    const char *reason;
    bool done;

    assert(order->name_n > 0 && order->name_n <= CERTIFICATE_NAMES_MAX && order->days > 0);
    *made = (struct certificate) { .key = NULL };
    done = key != NULL && x509 != NULL && sign_certificate(x509, key, order) &&
           write_fingerprint(x509, made) &&
           (made->certificate = certificate_as_pem(x509)) != NULL &&
           (made->key = key_as_pem(key)) != NULL;
    if (!done) {
        reason = ERR_reason_error_string(ERR_peek_last_error());
        log_write(log, LEVEL_EMERG, 0, "libcrypto cannot make a certificate: %s",
            reason != NULL ? reason : "out of memory");
    }
    X509_free(x509);
    EVP_PKEY_free(key);
    return done ? 0 : -1;
}

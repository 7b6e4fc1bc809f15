/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates of tests: see certificates.h. */
#include "support/certificates.h"

#include "support/directory.h"

#include <openssl/ec.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>

#define HOUR 3600

static void add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509_EXTENSION *extension;
    X509V3_CTX context;

    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    ck_assert_ptr_nonnull(extension);
    ck_assert_int_eq(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

struct identity certificates_make(const char *name, enum identity_key type,
    const struct identity *issuer, int is_authority, long seconds)
{
    struct identity identity = {
        .certificate = X509_new(),
        .key = type == IDENTITY_EC ? EVP_EC_gen("P-256") : EVP_RSA_gen(2048),
    };
    X509 *certificate = identity.certificate;
    X509_NAME *subject = X509_get_subject_name(certificate);
    uint64_t serial;

    ck_assert_ptr_nonnull(identity.key);
    X509_set_version(certificate, X509_VERSION_3);
    RAND_bytes((unsigned char *)&serial, sizeof(serial));
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -HOUR);
    X509_gmtime_adj(X509_getm_notAfter(certificate), seconds - HOUR);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(
        certificate, issuer != NULL ? X509_get_subject_name(issuer->certificate) : subject);
    X509_set_pubkey(certificate, identity.key);
    add_extension(certificate, issuer != NULL ? issuer->certificate : certificate,
        NID_basic_constraints, is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    ck_assert_int_gt(
        X509_sign(certificate, issuer != NULL ? issuer->key : identity.key, EVP_sha256()), 0);
    return identity;
}

void certificates_free(struct identity *identity)
{
    X509_free(identity->certificate);
    EVP_PKEY_free(identity->key);
    *identity = (struct identity) { NULL, NULL };
}

static FILE *open_new(const char *file)
{
    char path[4096];
    FILE *to;

    snprintf(path, sizeof(path), "%s/%s", directory, file);
    to = fopen(path, "w");
    ck_assert_ptr_nonnull(to);
    return to;
}

void certificates_write(const char *file, X509 *certificate, ...)
{
    FILE *to = open_new(file);
    va_list more;

    va_start(more, certificate);
    for (; certificate != NULL; certificate = va_arg(more, X509 *))
        ck_assert_int_eq(PEM_write_X509(to, certificate), 1);
    va_end(more);
    ck_assert_int_eq(fclose(to), 0);
}

void certificates_write_key(const char *file, EVP_PKEY *key, const char *password)
{
    FILE *to = open_new(file);

    ck_assert_int_eq(PEM_write_PrivateKey(to, key, password != NULL ? EVP_aes_128_cbc() : NULL,
                         NULL, 0, NULL, (void *)(uintptr_t)password),
        1);
    ck_assert_int_eq(fclose(to), 0);
}

void certificates_write_crl(const char *file, const struct identity *authority, X509 *revoked)
{
    FILE *to = open_new(file);
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *time = X509_gmtime_adj(NULL, -HOUR);

    X509_CRL_set_version(crl, X509_CRL_VERSION_2);
    X509_CRL_set_issuer_name(crl, X509_get_subject_name(authority->certificate));
    X509_CRL_set1_lastUpdate(crl, time);
    X509_gmtime_adj(time, HOUR);
    X509_CRL_set1_nextUpdate(crl, time);
    if (revoked != NULL) {
        X509_REVOKED *entry = X509_REVOKED_new();

        X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(revoked));
        X509_gmtime_adj(time, -HOUR);
        X509_REVOKED_set_revocationDate(entry, time);
        ck_assert_int_eq(X509_CRL_add0_revoked(crl, entry), 1);
    }
    ck_assert_int_gt(X509_CRL_sign(crl, authority->key, EVP_sha256()), 0);
    ck_assert_int_eq(PEM_write_X509_CRL(to, crl), 1);
    ck_assert_int_eq(fclose(to), 0);
    ASN1_TIME_free(time);
    X509_CRL_free(crl);
}

void certificates_write_ocsp(
    const char *file, const struct identity *authority, X509 *certificate, long seconds)
{
    FILE *to = open_new(file);
    OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
    OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha1(), certificate, authority->certificate);
    ASN1_TIME *from = X509_gmtime_adj(NULL, -HOUR), *until = X509_gmtime_adj(NULL, seconds - HOUR);
    OCSP_RESPONSE *response;

    ck_assert_ptr_nonnull(
        OCSP_basic_add1_status(basic, id, V_OCSP_CERTSTATUS_GOOD, 0, NULL, from, until));
    ck_assert_int_eq(OCSP_basic_sign(basic, authority->certificate, authority->key, EVP_sha256(),
                         NULL, OCSP_NOCERTS),
        1);
    response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
    ck_assert_int_eq(ASN1_i2d_fp_of(OCSP_RESPONSE, i2d_OCSP_RESPONSE, to, response), 1);
    ck_assert_int_eq(fclose(to), 0);
    OCSP_RESPONSE_free(response);
    ASN1_TIME_free(from);
    ASN1_TIME_free(until);
    OCSP_CERTID_free(id);
    OCSP_BASICRESP_free(basic);
}

void certificates_write_dhparam(const char *file)
{
    FILE *to = open_new(file);
    BIO *bio = BIO_new_fp(to, BIO_NOCLOSE);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "DH", NULL);
    EVP_PKEY *group = NULL;

    ck_assert_int_eq(EVP_PKEY_paramgen_init(context), 1);
    ck_assert_int_eq(EVP_PKEY_CTX_set_group_name(context, "ffdhe2048"), 1);
    ck_assert_int_eq(EVP_PKEY_paramgen(context, &group), 1);
    ck_assert_int_eq(PEM_write_bio_Parameters(bio, group), 1);
    EVP_PKEY_free(group);
    EVP_PKEY_CTX_free(context);
    BIO_free(bio);
    ck_assert_int_eq(fclose(to), 0);
}

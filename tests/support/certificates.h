/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates, keys and lists of revoked certificates that a test makes with libcrypto, in memory
 * and as files of its directory. A failure ends the test. */
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

struct identity {
    X509 *certificate;
    EVP_PKEY *key;
};

enum identity_key { IDENTITY_EC, IDENTITY_RSA };

/* Makes a certificate for `name`, valid for so many seconds from an hour ago, signed by the issuer,
 * or by its own key (NULL). An authority may sign others. */
struct identity certificates_make(const char *name, enum identity_key type,
    const struct identity *issuer, int is_authority, long seconds);
void certificates_free(struct identity *identity);
/* Write PEM to a file of that name in the directory: certificates up to a NULL, a key, encrypted
 * unless the password is NULL, and an authority's list with one revoked certificate, or with none
 * (NULL). */
void certificates_write(const char *file, X509 *certificate, ...);
void certificates_write_key(const char *file, EVP_PKEY *key, const char *password);
void certificates_write_crl(const char *file, const struct identity *authority, X509 *revoked);
/* Writes the authority's response of OCSP that the certificate is good, for so many seconds from an
 * hour ago. */
void certificates_write_ocsp(
    const char *file, const struct identity *authority, X509 *certificate, long seconds);
/* Writes the parameters of the group ffdhe2048. */
void certificates_write_dhparam(const char *file);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Responses of OCSP from files: see stapling.h. */
#include "keeper/stapling.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <stdlib.h>
#include <string.h>

/* Seconds that clocks may be apart. */
#define STAPLING_SKEW 300

struct staple {
    OCSP_BASICRESP *basic;
    unsigned char *p; /* the response as in its file */
    size_t n;
};

/* Whether a single response of the file is of today. */
static bool is_single_valid(OCSP_SINGLERESP *single)
{
    ASN1_GENERALIZEDTIME *from, *to;
    int reason;
    bool valid;

    OCSP_single_get0_status(single, &reason, NULL, &from, &to);
    valid = OCSP_check_validity(from, to, STAPLING_SKEW, -1) == 1;
    ERR_clear_error();
    return valid;
}

/* Whether a single response is about the certificate, by the serial number and the issuer's name. A
 * chain may lack the issuer's key, whose hash is not looked at. */
static bool is_about(const OCSP_SINGLERESP *single, const X509 *certificate)
{
    ASN1_OCTET_STRING *issuer = NULL;
    ASN1_OBJECT *algorithm = NULL;
    ASN1_INTEGER *serial = NULL;
    uint8_t digest[EVP_MAX_MD_SIZE];
    const EVP_MD *md;
    unsigned n = 0;

    OCSP_id_get0_info(&issuer, &algorithm, NULL, &serial,
        (OCSP_CERTID *)(uintptr_t)OCSP_SINGLERESP_get0_id(single));
    if (ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(certificate)) != 0)
        return false;
    md = EVP_get_digestbyobj(algorithm);
    return md != NULL && X509_NAME_digest(X509_get_issuer_name(certificate), md, digest, &n) == 1 &&
           (unsigned)ASN1_STRING_length(issuer) == n &&
           memcmp(ASN1_STRING_get0_data(issuer), digest, n) == 0;
}

/* Finds the single response about the certificate; NULL: there is none. */
static OCSP_SINGLERESP *find_response(const struct staple *staple, const X509 *certificate)
{
    for (int i = 0; i < OCSP_resp_count(staple->basic); i++)
        if (is_about(OCSP_resp_get0(staple->basic, i), certificate))
            return OCSP_resp_get0(staple->basic, i);
    return NULL;
}

/* libssl's callback for a client that asks for the status of the certificate. */
static int answer_status(SSL *ssl, void *data)
{
    const struct stapling *stapling = data;
    X509 *own = stapling->lib->SSL_get_certificate(ssl);

    for (unsigned i = 0; own != NULL && i < stapling->n; i++) {
        const struct staple *staple = &stapling->list[i];
        OCSP_SINGLERESP *single = find_response(staple, own);
        unsigned char *copy;

        if (single == NULL || !is_single_valid(single))
            continue;
        copy = OPENSSL_memdup(staple->p, staple->n);
        if (copy == NULL)
            break;
        stapling->lib->SSL_ctrl(
            ssl, SSL_CTRL_SET_TLSEXT_STATUS_REQ_OCSP_RESP, (long)staple->n, copy);
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_NOACK;
}

/* Parses the bytes of a file; NULL, or the name of the failed call. */
static const char *parse_staple(struct staple *staple, const struct pem_file *file)
{
    const unsigned char *at = (const unsigned char *)file->p;
    OCSP_RESPONSE *response;

    ERR_clear_error();
    response = d2i_OCSP_RESPONSE(NULL, &at, (long)file->n);
    if (response == NULL)
        return "d2i_OCSP_RESPONSE()";
    staple->basic = OCSP_response_get1_basic(response);
    OCSP_RESPONSE_free(response);
    if (staple->basic == NULL)
        return "OCSP_response_get1_basic()";
    staple->n = (size_t)(at - (const unsigned char *)file->p);
    staple->p = OPENSSL_memdup(file->p, staple->n);
    return staple->p != NULL ? NULL : "OPENSSL_memdup()";
}

/* Whether any single response of the file is of today. */
static bool is_staple_valid(const struct staple *staple)
{
    for (int i = 0; i < OCSP_resp_count(staple->basic); i++)
        if (is_single_valid(OCSP_resp_get0(staple->basic, i)))
            return true;
    return false;
}

static int read_staple(struct staple *staple, struct pem_file *file)
{
    const char *failed;

    if (pem_file_open(file) < 0)
        return -1;
    failed = parse_staple(staple, file);
    if (failed != NULL)
        pem_file_mistake(file, 0, failed);
    else if (!is_staple_valid(staple) && !file->files->opener->quiet)
        log_write(file->log, LEVEL_WARN, 0,
            "OCSP response \"%s\" is out of date, and not sent to clients",
            file->files->profiles->files[file->index].path);
    pem_file_close(file);
    return failed == NULL ? 0 : -1;
}

int stapling_open(struct stapling *stapling, const struct libssl *lib,
    const struct tls_profile *profile, struct pem_files *files, struct log *log)
{
    int status = 0;

    assert(stapling->list == NULL);
    *stapling = (struct stapling) { .lib = lib };
    if (profile->stapling_file_n == 0)
        return 0;
    stapling->list = calloc(profile->stapling_file_n, sizeof(*stapling->list));
    if (stapling->list == NULL) {
        log_write(log, LEVEL_EMERG, 0, "no memory for OCSP responses");
        return -1;
    }
    for (; stapling->n < profile->stapling_file_n; stapling->n++) {
        struct pem_file file = {
            .files = files,
            .log = log,
            .what = "OCSP response",
            .index = profile->stapling_files[stapling->n],
        };

        if (read_staple(&stapling->list[stapling->n], &file) < 0)
            status = -1;
    }
    return status;
}

void stapling_attach(struct stapling *stapling, const struct libssl *lib, SSL_CTX *ctx)
{
    lib->SSL_CTX_callback_ctrl(
        ctx, SSL_CTRL_SET_TLSEXT_STATUS_REQ_CB, (void (*)(void))answer_status);
    lib->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_TLSEXT_STATUS_REQ_CB_ARG, 0, stapling);
}

void stapling_close(struct stapling *stapling)
{
    for (unsigned i = 0; i < stapling->n; i++) {
        OCSP_BASICRESP_free(stapling->list[i].basic);
        OPENSSL_free(stapling->list[i].p);
    }
    free(stapling->list);
    *stapling = (struct stapling) { .list = NULL };
}

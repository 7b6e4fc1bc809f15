/* SPDX-License-Identifier: BSD-2-Clause */
/* Whom a context trusts: see trust.h. */
#include "keeper/trust.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

/* Targets of reading: the context, its identity, and the names that clients are told, if any. */
struct trusted {
    X509_STORE *store;
    struct session_context *identity;
    STACK_OF(X509_NAME) * names;
};

static const char *add_authority(struct trusted *trusted, X509 *authority)
{
    X509_NAME *name;

    if (X509_STORE_add_cert(trusted->store, authority) != 1)
        return "X509_STORE_add_cert()";
    if (trusted->names == NULL)
        return NULL;
    name = X509_NAME_dup(X509_get_subject_name(authority));
    if (name != NULL && sk_X509_NAME_push(trusted->names, name) > 0)
        return NULL;
    X509_NAME_free(name);
    return "X509_NAME_dup()";
}

/* Reads the certificates of a file; NULL, or the name of the failed call. */
static const char *read_authorities(struct trusted *trusted, BIO *bio)
{
    const char *failed = NULL;
    X509 *authority;
    unsigned n;

    for (n = 0; failed == NULL; n++) {
        authority = PEM_read_bio_X509_AUX(bio, NULL, pem_no_password, NULL);
        if (authority == NULL)
            return n > 0 && pem_is_at_end() ? NULL : "PEM_read_bio_X509_AUX()";
        failed = add_authority(trusted, authority);
        X509_free(authority);
    }
    return failed;
}

/* Reads the lists of revoked certificates of a file; NULL, or the name of the failed call. */
static const char *read_revoked(struct trusted *trusted, BIO *bio)
{
    X509_CRL *revoked;
    unsigned n;
    int added = 1;

    for (n = 0; added == 1; n++) {
        revoked = PEM_read_bio_X509_CRL(bio, NULL, pem_no_password, NULL);
        if (revoked == NULL)
            return n > 0 && pem_is_at_end() ? NULL : "PEM_read_bio_X509_CRL()";
        added = X509_STORE_add_crl(trusted->store, revoked);
        X509_CRL_free(revoked);
    }
    return "X509_STORE_add_crl()";
}

/* Reads a file of the profile, unless TLS_NO_FILE, by `read`. */
static int read_trusted(struct pem_file *pem, struct trusted *trusted,
    const char *(*read)(struct trusted *trusted, BIO *bio))
{
    const char *failed;

    if (pem->index == TLS_NO_FILE) {
        session_context_add(trusted->identity, NULL, 0);
        return 0;
    }
    if (pem_file_open(pem) < 0)
        return -1;
    ERR_clear_error();
    session_context_add(trusted->identity, pem->p, pem->n);
    failed = read(trusted, pem->bio);
    if (failed != NULL)
        pem_file_mistake(pem, 0, failed);
    pem_file_close(pem);
    return failed == NULL ? 0 : -1;
}

/* libssl's callback for each step of a verification: the handshake goes on. */
static int note_verification(int verified, X509_STORE_CTX *store)
{
    (void)verified;
    (void)store;
    return 1;
}

/* Makes libssl verify certificates of peers. */
static void verify_peers(const struct libssl *lib, SSL_CTX *ctx, const struct tls_profile *profile)
{
    lib->SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, note_verification);
    lib->SSL_CTX_set_verify_depth(ctx, (int)profile->verify_depth);
}

/* Asks clients for a certificate of the profile's authorities. */
static int ask_clients(const struct libssl *lib, SSL_CTX *ctx, const struct tls_profile *profile,
    struct pem_file *pem, struct trusted *trusted)
{
    trusted->names = sk_X509_NAME_new_null();
    if (trusted->names == NULL)
        return -1;
    verify_peers(lib, ctx, profile);
    pem->what = "client CA certificates";
    pem->index = profile->client_ca;
    if (read_trusted(pem, trusted, read_authorities) < 0) {
        sk_X509_NAME_pop_free(trusted->names, X509_NAME_free);
        return -1;
    }
    lib->SSL_CTX_set_client_CA_list(ctx, trusted->names); /* takes the names */
    trusted->names = NULL;
    return 0;
}

int trust_set(const struct libssl *lib, SSL_CTX *ctx, const struct tls_profile *profile,
    struct pem_files *files, struct session_context *identity, struct log *log)
{
    struct trusted trusted = {
        .store = lib->SSL_CTX_get_cert_store(ctx),
        .identity = identity,
    };
    struct pem_file pem = { .files = files, .log = log };
    int status = 0;

    if (profile->role == TLS_CLIENT)
        verify_peers(lib, ctx, profile);
    else if (profile->verify != TLS_VERIFY_OFF)
        status = ask_clients(lib, ctx, profile, &pem, &trusted);
    pem.what = "trusted certificates";
    pem.index = profile->trusted;
    if (read_trusted(&pem, &trusted, read_authorities) < 0)
        status = -1;
    pem.what = "CRL";
    pem.index = profile->crl;
    if (read_trusted(&pem, &trusted, read_revoked) < 0)
        status = -1;
    if (profile->crl != TLS_NO_FILE)
        X509_STORE_set_flags(trusted.store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return status;
}

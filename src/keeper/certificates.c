/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates with their chains, and private keys: see certificates.h. */
#include "keeper/certificates.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

/* What has been read of a file. */
struct parsed_file {
    struct certificate certificate;
    EVP_PKEY *key;
    bool bad_certificate, bad_key; /* the mistake has been logged */
    uint32_t passwords;            /* with which the key is bad */
    uint32_t other;                /* file of a key that is not the certificate's, if */
    bool mismatch;
};

struct certificates {
    struct pem_files *files;
    struct log *log;
    struct parsed_file *parsed; /* as many as there are files */
};

/* The line of a file with passwords that is tried. */
struct password_line {
    const char *p;
    size_t n;
};

struct certificates *certificates_create(struct pem_files *files, struct log *log)
{
    struct certificates *certificates = malloc(sizeof(*certificates));
    unsigned n = files->profiles->file_n;

    if (certificates == NULL)
        return NULL;
    *certificates = (struct certificates) { .files = files, .log = log };
    certificates->parsed = calloc(n > 0 ? n : 1, sizeof(*certificates->parsed));
    if (certificates->parsed != NULL)
        return certificates;
    free(certificates);
    return NULL;
}

void certificates_destroy(struct certificates *certificates)
{
    if (certificates == NULL)
        return;
    for (unsigned i = 0; i < certificates->files->profiles->file_n; i++) {
        struct parsed_file *parsed = &certificates->parsed[i];

        X509_free(parsed->certificate.leaf);
        sk_X509_pop_free(parsed->certificate.chain, X509_free);
        EVP_PKEY_free(parsed->key);
    }
    free(certificates->parsed);
    free(certificates);
}

/* Reads the leaf and its chain; NULL, or the name of the failed call. */
static const char *read_chain(struct certificate *certificate, BIO *bio)
{
    X509 *next;

    certificate->chain = sk_X509_new_null();
    if (certificate->chain == NULL)
        return "sk_X509_new_null()";
    certificate->leaf = PEM_read_bio_X509_AUX(bio, NULL, pem_no_password, NULL);
    if (certificate->leaf == NULL)
        return "PEM_read_bio_X509_AUX()";
    while ((next = PEM_read_bio_X509(bio, NULL, pem_no_password, NULL)) != NULL)
        if (sk_X509_push(certificate->chain, next) == 0) {
            X509_free(next);
            return "sk_X509_push()";
        }
    return pem_is_at_end() ? NULL : "PEM_read_bio_X509()";
}

const struct certificate *certificates_find(struct certificates *certificates, uint32_t file)
{
    struct pem_file pem = {
        .files = certificates->files,
        .log = certificates->log,
        .what = "certificate",
        .index = file,
    };
    struct parsed_file *parsed;
    const char *failed;

    assert(file < certificates->files->profiles->file_n);
    parsed = &certificates->parsed[file];
    if (parsed->bad_certificate)
        return NULL;
    if (parsed->certificate.leaf != NULL)
        return &parsed->certificate;
    parsed->bad_certificate = pem_file_open(&pem) < 0;
    if (parsed->bad_certificate)
        return NULL;
    ERR_clear_error();
    failed = read_chain(&parsed->certificate, pem.bio);
    parsed->bad_certificate = failed != NULL;
    if (failed != NULL)
        pem_file_mistake(&pem, 0, failed);
    pem_file_close(&pem);
    return failed == NULL ? &parsed->certificate : NULL;
}

bool certificates_note_mismatch(struct certificates *certificates, uint32_t file, uint32_t key)
{
    struct parsed_file *parsed = &certificates->parsed[file];
    bool noted = parsed->mismatch && parsed->other == key;

    assert(file < certificates->files->profiles->file_n);
    parsed->mismatch = true;
    parsed->other = key;
    return !noted;
}

static int give_password(char *to, int size, int writes, void *data)
{
    const struct password_line *line = data;

    (void)writes;
    if (line->n > (size_t)size)
        return -1;
    memcpy(to, line->p, line->n);
    return (int)line->n;
}

/* Takes the next line, without its end; false at the end of the passwords. */
static bool next_password(struct password_line *line, const char **at)
{
    if (**at == '\0')
        return false;
    line->p = *at;
    line->n = strcspn(*at, "\r\n");
    *at += line->n;
    *at += strspn(*at, "\r\n");
    return true;
}

/* Tries the passwords in their order; NULL with OpenSSL's errors. */
static EVP_PKEY *decrypt_key(BIO *bio, const char *passwords)
{
    struct password_line line;
    EVP_PKEY *key = NULL;

    ERR_clear_error();
    if (passwords[0] == '\0')
        return PEM_read_bio_PrivateKey(bio, NULL, pem_no_password, NULL);
    while (key == NULL && next_password(&line, &passwords)) {
        ERR_clear_error();
        (void)BIO_reset(bio);
        key = PEM_read_bio_PrivateKey(bio, NULL, give_password, &line);
    }
    return key;
}

/* Reads the key; the mistake has been logged by -1. */
static int read_private_key(struct certificates *certificates, struct parsed_file *parsed,
    uint32_t file, uint32_t passwords)
{
    struct pem_file words = {
        .files = certificates->files,
        .log = certificates->log,
        .what = "passwords",
        .index = passwords,
    };
    struct pem_file pem = words;

    pem.what = "certificate key";
    pem.index = file;
    if (passwords != TLS_NO_FILE && pem_file_open(&words) < 0)
        return -1;
    if (pem_file_open(&pem) == 0) {
        parsed->key = decrypt_key(pem.bio, words.p != NULL ? words.p : "");
        if (parsed->key == NULL)
            pem_file_mistake(&pem, 0, "PEM_read_bio_PrivateKey()");
        pem_file_close(&pem);
    }
    pem_file_close(&words);
    return parsed->key != NULL ? 0 : -1;
}

EVP_PKEY *certificates_find_key(
    struct certificates *certificates, uint32_t file, uint32_t passwords)
{
    struct parsed_file *parsed;

    assert(file < certificates->files->profiles->file_n);
    assert(passwords == TLS_NO_FILE || passwords < certificates->files->profiles->file_n);
    parsed = &certificates->parsed[file];
    if (parsed->key != NULL || (parsed->bad_key && parsed->passwords == passwords))
        return parsed->key;
    parsed->bad_key = read_private_key(certificates, parsed, file, passwords) < 0;
    parsed->passwords = passwords;
    return parsed->key;
}

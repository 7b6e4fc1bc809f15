/* SPDX-License-Identifier: BSD-2-Clause */
/* The identity of a profile among sessions: see session_context.h. */
#include "keeper/session_context.h"

#include <assert.h>
#include <string.h>

/* Begins the digest, and changes with what follows. */
#define SESSION_LABEL "forkbeard session 1"

void session_context_add(struct session_context *identity, const void *p, size_t n)
{
    const uint64_t length = n;

    if (identity->digest == NULL ||
        (EVP_DigestUpdate(identity->digest, &length, sizeof(length)) == 1 &&
            EVP_DigestUpdate(identity->digest, p, n) == 1))
        return;
    EVP_MD_CTX_free(identity->digest);
    identity->digest = NULL;
}

static void hash_text(struct session_context *identity, const char *text)
{
    session_context_add(identity, text, text != NULL ? strlen(text) + 1 : 0);
}

static void hash_number(struct session_context *identity, uint64_t number)
{
    session_context_add(identity, &number, sizeof(number));
}

void session_context_begin(struct session_context *identity, const struct tls_profile *profile)
{
    identity->digest = EVP_MD_CTX_new();
    if (identity->digest != NULL && EVP_DigestInit_ex(identity->digest, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(identity->digest);
        identity->digest = NULL;
    }
    hash_text(identity, SESSION_LABEL);
    if (profile->role == TLS_CLIENT) {
        hash_text(identity, "client");
        hash_number(identity, profile->versions);
        hash_number(identity, profile->sends_name);
        session_context_add(identity, profile->alpn, profile->alpn_n);
    }
    hash_number(identity, profile->verify);
    hash_number(identity, profile->verify_depth);
    hash_text(identity, profile->ciphers);
    hash_number(identity, profile->command_n);
    for (unsigned i = 0; i < profile->command_n; i++) {
        hash_text(identity, profile->commands[i].name);
        hash_text(identity, profile->commands[i].value);
    }
}

int session_context_end(
    struct session_context *identity, uint8_t hash[SESSION_CONTEXT], struct log *log)
{
    unsigned n = 0;
    bool set = identity->digest != NULL && EVP_DigestFinal_ex(identity->digest, hash, &n) == 1;

    _Static_assert(SESSION_CONTEXT == SSL_MAX_SID_CTX_LENGTH, "the size of SHA-256");
    assert(!set || n == SESSION_CONTEXT);
    EVP_MD_CTX_free(identity->digest);
    identity->digest = NULL;
    if (!set)
        log_write(log, LEVEL_EMERG, 0, "the identity of sessions cannot be computed");
    return set ? 0 : -1;
}

int session_context_compute(uint8_t hash[SESSION_CONTEXT], EVP_MD_CTX *digest,
    const uint8_t settings[SESSION_CONTEXT], const struct tls_profile *profile,
    const struct tls_file *files, fb_bytes names)
{
    const struct tls_named *named = &profile->named;
    bool set = EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1 &&
               EVP_DigestUpdate(digest, settings, SESSION_CONTEXT) == 1;

    for (unsigned i = 0; set && i < profile->pair_n; i++) {
        const char *path = files[profile->pairs[i].certificate].path;

        set = EVP_DigestUpdate(digest, path, strlen(path) + 1) == 1;
    }
    for (unsigned i = 0; set && i < named->n; i++)
        set =
            EVP_DigestUpdate(digest, named->directories[i], strlen(named->directories[i]) + 1) == 1;
    set = set && (names.n == 0 || EVP_DigestUpdate(digest, names.p, names.n) == 1);
    return set && EVP_DigestFinal_ex(digest, hash, NULL) == 1 ? 0 : -1;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The cipher suites that a context offers: see suites.h. */
#include "keeper/suites.h"

#include "keeper/reason.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* nginx's default of ssl_ciphers. */
#define DEFAULT_CIPHERS "HIGH:!aNULL:!MD5"

/* Names of suites with colons between. */
struct suite_list {
    char text[1024];
    size_t n;
};

static const char *wanted_ciphers(const struct tls_profile *profile)
{
    return profile->ciphers != NULL ? profile->ciphers : DEFAULT_CIPHERS;
}

int suites_set(
    const struct libssl *lib, SSL_CTX *ctx, const struct tls_profile *profile, struct log *log)
{
    const char *wanted = wanted_ciphers(profile);
    char reasons[REASON_TEXT];

    if (lib->SSL_CTX_set_cipher_list(ctx, wanted) == 1)
        return 0;
    log_write(log, LEVEL_EMERG, 0, "SSL_CTX_set_cipher_list(\"%s\")%s in %s", wanted,
        reason_take(reasons, sizeof(reasons), ""), profile->at);
    return -1;
}

static void add_suite(struct suite_list *list, const char *name)
{
    int n = snprintf(
        list->text + list->n, sizeof(list->text) - list->n, "%s%s", list->n > 0 ? ":" : "", name);

    list->n += (size_t)n;
    assert(list->n < sizeof(list->text)); /* the suites of records are few */
}

static int lacks_suites(
    const char *version, const char *wanted, const struct tls_profile *profile, struct log *log)
{
    log_write(log, LEVEL_EMERG, 0,
        "no cipher suite of TLS %s is left of \"%s\": there are AES-GCM and ChaCha20-Poly1305, "
        "with ECDHE or DHE in TLS 1.2, in %s",
        version, wanted, profile->at);
    return -1;
}

int suites_restrict(const struct libssl *lib, SSL_CTX *ctx, const struct tls_profile *profile,
    unsigned versions, struct log *log)
{
    const STACK_OF(SSL_CIPHER) *offered = lib->SSL_CTX_get_ciphers(ctx);
    struct suite_list old = { .n = 0 }, new = { .n = 0 };

    for (int i = 0; i < sk_SSL_CIPHER_num(offered); i++) {
        const SSL_CIPHER *cipher = sk_SSL_CIPHER_value(offered, i);
        const struct tls_suite *suite = tls_suite_find(lib->SSL_CIPHER_get_protocol_id(cipher));

        if (suite != NULL)
            add_suite(suite->version == TLS_1_3 ? &new : &old, lib->SSL_CIPHER_get_name(cipher));
    }
    if ((versions & TLS_VERSION_1_2) != 0 && old.n == 0)
        return lacks_suites("1.2", wanted_ciphers(profile), profile, log);
    if ((versions & TLS_VERSION_1_3) != 0 && new.n == 0)
        return lacks_suites("1.3",
            profile->role == TLS_CLIENT ? "proxy_ssl_conf_command Ciphersuites"
                                        : "ssl_conf_command Ciphersuites",
            profile, log);
    if (lib->SSL_CTX_set_ciphersuites(ctx, new.text) == 1 &&
        (old.n == 0 || lib->SSL_CTX_set_cipher_list(ctx, old.text) == 1))
        return 0;
    log_write(log, LEVEL_EMERG, 0, "the cipher suites \"%s\" could not be set in %s", old.text,
        profile->at);
    return -1;
}

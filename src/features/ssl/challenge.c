/* SPDX-License-Identifier: BSD-2-Clause */
/* The profiles of clients that test by TLS whether a name is ours (tls-alpn-01 of ACME, RFC 8737):
 * one for each directory with certificates for tests, whatever else a server wants of TLS. */
#include "base/path_check.h"
#include "features/features.h"
#include "features/ssl/handshake.h"
#include "features/ssl/ssl.h"
#include "settings/listen.h"

#include <string.h>

/* Returns the directory of a server's challenges; NULL: none, or no client begins with TLS. */
static const struct conf_word *challenge_word(const struct scope *server)
{
    const struct ssl_values *values = feature_values(server, FEATURE_SSL);
    const struct listen_address *listen;

    STAILQ_FOREACH (listen, &server->listens, link)
        if (listen->ssl)
            return values->challenges;
    return NULL;
}

unsigned ssl_count_challenges(const struct scope *stream)
{
    const struct conf_word *last = NULL;
    const struct scope *server;
    unsigned n = 0;

    STAILQ_FOREACH (server, &stream->servers, link) {
        const struct conf_word *word = challenge_word(server);

        n += word != NULL && word != last;
        last = word != NULL ? word : last;
    }
    return n;
}

/* Warns in a test of the configuration, where no keeper tells of the directory in its log. */
static void check_challenges(
    struct apply *apply, const char *directory, const struct conf_word *word)
{
    struct path_fault fault;

    if (apply->options->testing && !path_check(PATH_DIRECTORY, directory, &fault))
        report_warn(apply->report, word, "challenges are not answered: %s", fault.text);
}

/* Makes the profile of a directory; NULL after a report. */
static const struct tls_profile *make_challenge(struct apply *apply, const struct conf_word *word)
{
    struct tls_profiles *profiles = &apply->cycle->tls;
    struct tls_profile *profile = &profiles->list[profiles->n];

    *profile = (struct tls_profile) {
        .index = profiles->n,
        .at = ssl_place(apply, word),
        .versions = TLS_VERSION_1_2 | TLS_VERSION_1_3,
        .alpn = (const uint8_t *)SSL_CHALLENGE_ALPN,
        .alpn_n = sizeof(SSL_CHALLENGE_ALPN) - 1,
        .client_ca = TLS_NO_FILE,
        .trusted = TLS_NO_FILE,
        .crl = TLS_NO_FILE,
        .dhparam = TLS_NO_FILE,
        .passwords = TLS_NO_FILE,
        .session_timeout = 1,
        .facts = ((const struct ssl_conf *)feature_conf(apply, FEATURE_SSL))->facts,
        .challenges = ssl_directory(apply, word, strlen(word->text)),
    };
    if (profile->at == NULL || profile->challenges == NULL)
        return NULL;
    check_challenges(apply, profile->challenges, word);
    profiles->n++;
    return profile;
}

void ssl_make_challenges(struct apply *apply, struct scope *stream)
{
    const struct conf_word *last = NULL;
    const struct tls_profile *made = NULL;
    struct scope *server;

    STAILQ_FOREACH (server, &stream->servers, link) {
        const struct conf_word *word = challenge_word(server);

        if (word == NULL)
            continue;
        if (word != last)
            made = make_challenge(apply, word);
        last = word;
        server->server->challenges = made;
    }
}

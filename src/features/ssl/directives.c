/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads nginx's directives of TLS to clients.
 *
 * Responsible for syntax, and for refusing by name what is not supported. Never opens a file, and
 * never reads a list of ciphers or curves, which are the library's affair. */
#include "features/ssl/ssl.h"

#include "base/number.h"
#include "features/features.h"
#include "settings/set_value.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#define FIELD(member) SETTING_FIELD(struct ssl_values, member)

/* ---- Files ---- */

static int add_path(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct ssl_words *words = field;
    const struct conf_word **list = apply_grow(apply, words->list, words->n, sizeof(*words->list));

    if (list == NULL)
        return -1;
    words->list = list;
    words->list[words->n++] = &directive->args[0];
    return 0;
}

static int certificate_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct ssl_paths *paths = field;
    struct ssl_path *list = apply_grow(apply, paths->list, paths->n, sizeof(*paths->list));

    if (list == NULL || ssl_read_path(apply, directive, &list[paths->n]) == -1)
        return -1;
    paths->list = list;
    paths->n++;
    return 0;
}

/* An empty path takes the files of stream {} away. */
static int file_list_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    return directive->args[0].text[0] != '\0' ? add_path(apply, directive, field) : 0;
}

/* ---- Versions and algorithms ---- */

/* Which curves there are is known to the library alone. */
static int curves_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    const char *text = directive->args[0].text;
    size_t n = strlen(text);

    *(const char **)field = NULL;
    if (strcmp(text, "auto") == 0)
        return 0;
    if (n == 0 || text[0] == ':' || text[n - 1] == ':' || strstr(text, "::") != NULL ||
        strpbrk(text, " \t\r\n,;") != NULL)
        return set_bad_value(
            apply, directive, 0, "expected \"auto\", or names of curves with \":\" between them");
    return set_string(apply, directive, field);
}

/* ---- Sessions ---- */

/* Checks "NAME:SIZE" of a shared cache, which nginx has of eight pages at least. */
static bool is_shared_cache(const char *text)
{
    const char *colon = strchr(text, ':');
    int64_t size;

    return colon != NULL && colon != text &&
           number_parse_size(colon + 1, 8 * (int64_t)sysconf(_SC_PAGESIZE), INT64_MAX, &size) ==
               NUMBER_OK;
}

static bool is_session_cache(const char *text)
{
    int64_t size;

    if (strcmp(text, "off") == 0 || strcmp(text, "none") == 0 || strcmp(text, "builtin") == 0)
        return true;
    if (strncmp(text, "builtin:", 8) == 0)
        return number_parse(text + 8, 0, INT_MAX, &size) == NUMBER_OK;
    return strncmp(text, "shared:", 7) == 0 && is_shared_cache(text + 7);
}

/* Without effect: clients bring their sessions in tickets. */
static int session_cache_set(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    (void)field;
    for (unsigned i = 0; i < directive->arg_n; i++)
        if (!is_session_cache(directive->args[i].text))
            return set_bad_value(apply, directive, i,
                "expected \"off\", \"none\", \"builtin\", \"builtin:sessions\" or "
                "\"shared:name:size\" with a size of at least %ldk",
                8 * sysconf(_SC_PAGESIZE) / 1024);
    return 0;
}

/* Without effect: nginx verifies responses that it has asked for. */
static int stapling_verify_set(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    int64_t ignored;

    (void)field;
    return set_flag(apply, directive, &ignored);
}

/* In the order of enum tls_verify. */
static const char *const verify_names[] = { "off", "on", "optional", "optional_no_ca", NULL };

static const struct setting rows[] = {
    { "ssl_alpn", CONTEXT_SERVERS, 1, UCHAR_MAX, .set = ssl_set_alpn, FIELD(alpn),
        .unset = "none" },
    { "ssl_alpn_challenge_directory", CONTEXT_SERVERS, 1, 1, .set = ssl_set_file, FIELD(challenges),
        .unset = "none" },
    { "ssl_certificate", CONTEXT_SERVERS, 1, 1, .set = certificate_set, .repeats = true,
        FIELD(certificates), .unset = "none" },
    { "ssl_certificate_cache", CONTEXT_SERVERS, 1, 3, .set = ssl_set_certificate_cache,
        FIELD(cache), .initial = "off" },
    { "ssl_certificate_key", CONTEXT_SERVERS, 1, 1, .set = certificate_set, .repeats = true,
        FIELD(keys), .unset = "none" },
    { "ssl_ciphers", CONTEXT_SERVERS, 1, 1, .set = set_string, FIELD(ciphers),
        .unset = "AES-GCM and ChaCha20-Poly1305" },
    { "ssl_client_certificate", CONTEXT_SERVERS, 1, 1, .set = ssl_set_file,
        FIELD(client_certificate), .unset = "none" },
    { "ssl_conf_command", CONTEXT_SERVERS, 2, 2, .set = ssl_set_conf_command, .repeats = true,
        FIELD(commands), .unset = "none" },
    { "ssl_crl", CONTEXT_SERVERS, 1, 1, .set = ssl_set_file, FIELD(crl), .unset = "none" },
    { "ssl_dhparam", CONTEXT_SERVERS, 1, 1, .set = ssl_set_file, FIELD(dhparam), .unset = "none" },
    { "ssl_ecdh_curve", CONTEXT_SERVERS, 1, 1, .set = curves_set, FIELD(curves),
        .initial = "auto" },
    { "ssl_handshake_timeout", CONTEXT_SERVERS, 1, 1, .set = set_msec, FIELD(handshake_timeout),
        .least_value = 1, .greatest_value = INT64_MAX, .initial = "60s" },
    { "ssl_key_log", CONTEXT_SERVERS, 1, 1, .set = ssl_set_file, FIELD(key_log), .unset = "none" },
    { "ssl_password_file", CONTEXT_SERVERS, 1, 1, .set = ssl_set_file, FIELD(passwords),
        .unset = "none" },
    { "ssl_prefer_server_ciphers", CONTEXT_SERVERS, 1, 1, .set = set_flag,
        FIELD(prefer_server_ciphers), .initial = "off" },
    { "ssl_protocols", CONTEXT_SERVERS, 1, UCHAR_MAX, .set = ssl_set_protocols, .repeats = true,
        FIELD(versions), .initial = "TLSv1.2 TLSv1.3" },
    { "ssl_reject_handshake", CONTEXT_SERVERS, 1, 1, .set = set_flag, FIELD(reject_handshake),
        .initial = "off" },
    { "ssl_session_cache", CONTEXT_SERVERS, 1, 2, .set = session_cache_set, .initial = "none" },
    { "ssl_session_ticket_key", CONTEXT_SERVERS, 1, 1, .set = file_list_set, .repeats = true,
        FIELD(ticket_keys), .unset = "none" },
    { "ssl_session_tickets", CONTEXT_SERVERS, 1, 1, .set = set_flag, FIELD(session_tickets),
        .initial = "on" },
    { "ssl_session_timeout", CONTEXT_SERVERS, 1, 1, .set = set_msec, FIELD(session_timeout),
        .least_value = 1000, .greatest_value = INT64_C(31536000000), .initial = "5m" },
    { "ssl_stapling", CONTEXT_SERVERS, 1, 1, .set = set_flag, FIELD(stapling), .initial = "off" },
    { "ssl_stapling_file", CONTEXT_SERVERS, 1, 1, .set = file_list_set, .repeats = true,
        FIELD(stapling_files), .unset = "none" },
    { "ssl_stapling_verify", CONTEXT_SERVERS, 1, 1, .set = stapling_verify_set, .initial = "off" },
    { "ssl_trusted_certificate", CONTEXT_SERVERS, 1, 1, .set = ssl_set_file,
        FIELD(trusted_certificate), .unset = "none" },
    { "ssl_verify_client", CONTEXT_SERVERS, 1, 1, .set = set_name, FIELD(verify_client),
        .names = verify_names, .initial = "off" },
    { "ssl_verify_depth", CONTEXT_SERVERS, 1, 1, .set = set_number, FIELD(verify_depth),
        .greatest_value = INT_MAX, .initial = "1" },
    { .name = NULL },
};

const struct feature ssl_feature = {
    .name = "ssl",
    .rows = rows,
    .server_size = sizeof(struct ssl_values),
    .conf_size = sizeof(struct ssl_conf),
    .variables = variables_ssl,
    .tls = &ssl_clients,
    .finish = ssl_make_profiles,
    .bind = ssl_bind,
};

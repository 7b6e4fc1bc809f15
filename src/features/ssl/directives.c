/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads nginx's directives of TLS to clients.
 *
 * Responsible for syntax, and for refusing by name what is not supported. Never opens a file, and
 * never reads a list of ciphers or curves, which are the library's affair. */
#include "features/ssl/ssl.h"

#include "base/number.h"
#include "features/features.h"
#include "settings/set_value.h"

#include <bsd/string.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define FIELD(member) SETTING_FIELD(struct ssl_values, member)
#define PATH_EXPECTED "expected the path of a file"

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

int ssl_check_pair_path(struct apply *apply, const struct conf_directive *directive)
{
    const char *text = directive->args[0].text;

    if (text[0] == '\0')
        return set_bad_value(apply, directive, 0, PATH_EXPECTED);
    if (strncmp(text, "engine:", 7) == 0 || strncmp(text, "store:", 6) == 0)
        return set_bad_value(apply, directive, 0,
            "keys of engines and stores of OpenSSL are not supported, " PATH_EXPECTED);
    if (strncmp(text, "data:", 5) == 0)
        return set_bad_value(apply, directive, 0,
            "certificates and keys in the configuration itself are not supported, " PATH_EXPECTED);
    if (strchr(text, '$') != NULL)
        return set_bad_value(apply, directive, 0,
            "certificates and keys by variables are not supported, " PATH_EXPECTED);
    return 0;
}

static int certificate_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    if (ssl_check_pair_path(apply, directive) == -1)
        return -1;
    return add_path(apply, directive, field);
}

/* An empty path is no file: so a server can do without a file of stream {}. */
int ssl_set_file(struct apply *apply, const struct conf_directive *directive, void *field)
{
    (void)apply;
    *(const struct conf_word **)field = directive->args[0].text[0] != '\0' ? directive->args : NULL;
    return 0;
}

/* An empty path takes the files of stream {} away. */
static int file_list_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    return directive->args[0].text[0] != '\0' ? add_path(apply, directive, field) : 0;
}

/* ---- Versions and algorithms ---- */

/* The last two are supported. */
static const char *const version_names[] = { "SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2",
    "TLSv1.3", NULL };
static const uint8_t version_bits[] = { 0, 0, 0, 0, TLS_VERSION_1_2, TLS_VERSION_1_3 };

/* Returns the place of the version; -1: no version of nginx's. */
static int find_version(const char *name)
{
    for (int i = 0; version_names[i] != NULL; i++)
        if (strcasecmp(version_names[i], name) == 0)
            return i;
    return -1;
}

/* Warns of the versions of a set of bits, by their places. */
static void warn_of_versions(
    struct apply *apply, const struct conf_directive *directive, unsigned dropped)
{
    char list[64] = "";

    for (int i = 0; version_names[i] != NULL; i++)
        if (dropped >> i & 1) {
            strlcat(list, *list != '\0' ? ", " : "", sizeof(list));
            strlcat(list, version_names[i], sizeof(list));
        }
    report_warn(apply->report, &directive->name,
        "\"%s\" leaves out %s: only TLSv1.2 and TLSv1.3 are supported", apply->setting->name, list);
}

/* Old versions are left out with a warning, where a newer one remains. */
int ssl_set_protocols(struct apply *apply, const struct conf_directive *directive, void *field)
{
    int64_t *versions = field, found = 0;
    unsigned dropped = 0;

    for (unsigned i = 0; i < directive->arg_n; i++) {
        int version = find_version(directive->args[i].text);

        if (version == -1)
            return set_bad_name(
                apply, directive, i, version_names + 4, "\"TLSv1.2\" or \"TLSv1.3\"");
        found |= version_bits[version];
        dropped |= version_bits[version] == 0 ? 1u << version : 0;
    }
    if (found == 0)
        return set_bad_value(apply, directive, 0, "only \"TLSv1.2\" and \"TLSv1.3\" are supported");
    *versions |= found;
    if (dropped != 0)
        warn_of_versions(apply, directive, dropped);
    return 0;
}

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

int ssl_set_alpn(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct ssl_alpn *alpn = field;
    unsigned n = 0;
    uint8_t *p;

    for (unsigned i = 0; i < directive->arg_n; i++) {
        size_t length = strlen(directive->args[i].text);

        if (length == 0 || length > UINT8_MAX)
            return set_bad_value(
                apply, directive, i, "the name of a protocol has 1 to %d bytes", UINT8_MAX);
        n += 1 + (unsigned)length;
    }
    assert(n <= UINT16_MAX); /* the length of a list of ALPN */
    p = apply_alloc(apply, n);
    if (p == NULL)
        return -1;
    *alpn = (struct ssl_alpn) { p, n };
    for (unsigned i = 0; i < directive->arg_n; i++) {
        const char *name = directive->args[i].text;

        *p++ = (uint8_t)strlen(name);
        memcpy(p, name, p[-1]);
        p += p[-1];
    }
    return 0;
}

int ssl_set_conf_command(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct ssl_commands *commands = field;
    struct tls_command *list =
        apply_grow(apply, commands->list, commands->n, sizeof(*commands->list));

    if (list == NULL)
        return -1;
    commands->list = list;
    commands->list[commands->n++] =
        (struct tls_command) { directive->args[0].text, directive->args[1].text };
    return 0;
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
    { "ssl_certificate", CONTEXT_SERVERS, 1, 1, .set = certificate_set, .repeats = true,
        FIELD(certificates), .unset = "none" },
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* The directives of TLS to servers, which protocols have under names of their own: the rows, and
 * the profiles made of the values.
 *
 * Responsible for what belongs together: a certificate and its key, verification and its
 * authorities. Servers of a protocol without such a directive of their own share a profile. */
#include "features/features.h"
#include "features/ssl/ssl.h"
#include "settings/set_value.h"
#include "settings/template.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#define FIELD(member) SETTING_FIELD(struct ssl_client_values, member)

/* An empty path takes the file of stream {} away. */
static int client_pair_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    if (directive->args[0].text[0] != '\0')
        return ssl_read_path(apply, directive, field);
    *(struct ssl_path *)field = (struct ssl_path) { .word = NULL };
    return 0;
}

static int client_name_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    const struct conf_word *word = &directive->args[0];

    return (*(const struct template **)field = template_of(apply, word, word->text)) != NULL ? 0
                                                                                             : -1;
}

/* As the proxy names the directives; the first is the declared directive itself. */
static const struct setting rows[] = {
    { "proxy_ssl", CONTEXT_SERVERS, 1, 1, .set = set_flag, FIELD(on), .initial = "off" },
    { "proxy_ssl_alpn", CONTEXT_SERVERS, 1, UCHAR_MAX, .set = ssl_set_alpn, FIELD(alpn),
        .unset = "none" },
    { "proxy_ssl_certificate", CONTEXT_SERVERS, 1, 1, .set = client_pair_set, FIELD(certificate),
        .unset = "none" },
    { "proxy_ssl_certificate_cache", CONTEXT_SERVERS, 1, 3, .set = ssl_set_certificate_cache,
        FIELD(cache), .initial = "off" },
    { "proxy_ssl_certificate_key", CONTEXT_SERVERS, 1, 1, .set = client_pair_set, FIELD(key),
        .unset = "none" },
    { "proxy_ssl_ciphers", CONTEXT_SERVERS, 1, 1, .set = set_string, FIELD(ciphers),
        .unset = "AES-GCM and ChaCha20-Poly1305" },
    { "proxy_ssl_conf_command", CONTEXT_SERVERS, 2, 2, .set = ssl_set_conf_command, .repeats = true,
        FIELD(commands), .unset = "none" },
    { "proxy_ssl_crl", CONTEXT_SERVERS, 1, 1, .set = ssl_set_file, FIELD(crl), .unset = "none" },
    { "proxy_ssl_key_log", CONTEXT_SERVERS, 1, 1, .set = ssl_set_file, FIELD(key_log),
        .unset = "none" },
    { "proxy_ssl_name", CONTEXT_SERVERS, 1, 1, .set = client_name_set, FIELD(name),
        .unset = "the name in proxy_pass" },
    { "proxy_ssl_password_file", CONTEXT_SERVERS, 1, 1, .set = ssl_set_file, FIELD(passwords),
        .unset = "none" },
    { "proxy_ssl_protocols", CONTEXT_SERVERS, 1, UCHAR_MAX, .set = ssl_set_protocols,
        .repeats = true, FIELD(versions), .initial = "TLSv1.2 TLSv1.3" },
    { "proxy_ssl_server_name", CONTEXT_SERVERS, 1, 1, .set = set_flag, FIELD(sends_name),
        .initial = "off" },
    { "proxy_ssl_session_reuse", CONTEXT_SERVERS, 1, 1, .set = set_flag, FIELD(reuses_sessions),
        .initial = "on" },
    { "proxy_ssl_trusted_certificate", CONTEXT_SERVERS, 1, 1, .set = ssl_set_file,
        FIELD(trusted_certificate), .unset = "none" },
    { "proxy_ssl_verify", CONTEXT_SERVERS, 1, 1, .set = set_flag, FIELD(verify), .initial = "off" },
    { "proxy_ssl_verify_depth", CONTEXT_SERVERS, 1, 1, .set = set_number, FIELD(verify_depth),
        .greatest_value = INT_MAX, .initial = "1" },
    { .name = NULL },
};

/* Whether the entry is a directive of the declaration. */
static bool is_of_declaration(const struct scope_entry *seen, const fb_directive *declared)
{
    return seen->setting->tls != NULL && seen->setting->declared == declared;
}

static bool has_own_client_values(const struct scope *server, const fb_directive *declared)
{
    const struct scope_entry *seen;

    STAILQ_FOREACH (seen, &server->seen, link)
        if (is_of_declaration(seen, declared))
            return true;
    return false;
}

/* Returns the word of the directive that sets a field, in force for the server, for a message. */
static const struct conf_word *client_word(
    const struct scope *server, const fb_directive *declared, size_t offset)
{
    const struct scope_entry *seen;

    for (const struct scope *scope = server; scope != NULL; scope = scope->outer)
        STAILQ_FOREACH (seen, &scope->seen, link)
            if (is_of_declaration(seen, declared) && seen->setting->tls->offset == offset)
                return &seen->directive->name;
    return &server->directive->name;
}

/* Reports values that do not go together; returns whether all do. */
static bool check_client_values(struct apply *apply, const struct scope *server,
    const fb_directive *declared, const struct ssl_client_values *values)
{
    const struct conf_word *certificate = values->certificate.word;

    if (certificate != NULL && values->key.word == NULL) {
        report_error(apply->report, certificate,
            "no \"%s_certificate_key\" is defined for certificate \"%s\"", declared->name,
            certificate->text);
        return false;
    }
    if (values->verify && values->trusted_certificate == NULL) {
        report_error(apply->report,
            client_word(server, declared, offsetof(struct ssl_client_values, verify)),
            "no %s_trusted_certificate for %s_verify", declared->name, declared->name);
        return false;
    }
    return true;
}

/* Returns the profile that the servers without a directive of their own share, or NULL. */
static struct ssl_client *find_common(const struct ssl_conf *conf, const fb_directive *declared)
{
    struct ssl_client *client = conf->clients;

    while (client != NULL && (client->own || client->declared != declared))
        client = client->next;
    return client;
}

static const fb_tls_profile *make_client(
    struct apply *apply, struct scope *server, const fb_directive *declared, const void *values)
{
    struct ssl_conf *conf = feature_conf(apply, FEATURE_SSL);
    const struct ssl_client_values *own = values;
    bool has_own = has_own_client_values(server, declared);
    struct ssl_client *client = has_own ? NULL : find_common(conf, declared);

    if (!own->on)
        return NULL;
    if (client != NULL)
        return &client->shown;
    if (!check_client_values(apply, server, declared, own))
        return NULL;
    client = apply_alloc(apply, sizeof(*client));
    if (client == NULL)
        return NULL;
    *client = (struct ssl_client) {
        .next = conf->clients,
        .declared = declared,
        .values = own,
        .server = server,
        .own = has_own,
        .shown.name = own->name,
    };
    conf->clients = client;
    conf->client_n++;
    return &client->shown;
}

const struct feature_tls ssl_clients = {
    .rows = rows,
    .size = sizeof(struct ssl_client_values),
    .make = make_client,
};

static struct tls_pair *make_client_pair(
    struct apply *apply, const struct ssl_client_values *values)
{
    struct tls_pair *pair = apply_alloc(apply, sizeof(*pair));

    if (pair != NULL)
        ssl_fill_pair(apply, pair, values->certificate.word, values->key.word, values->passwords);
    return pair;
}

static void fill_client_profile(
    struct apply *apply, const struct ssl_client *client, struct tls_profile *profile)
{
    const struct ssl_client_values *values = client->values;
    bool has_pair = values->certificate.word != NULL,
         is_named = has_pair && ssl_is_named(&values->certificate, &values->key);

    *profile = (struct tls_profile) {
        .role = TLS_CLIENT,
        .at = ssl_place(apply, &client->server->directive->name),
        .pairs = has_pair && !is_named ? make_client_pair(apply, values) : NULL,
        .pair_n = has_pair && !is_named,
        .named.cache = values->cache,
        .versions = (uint8_t)values->versions,
        .sends_name = values->sends_name != 0,
        .ciphers = values->ciphers,
        .alpn = values->alpn.p,
        .alpn_n = values->alpn.n,
        .commands = values->commands.list,
        .command_n = values->commands.n,
        .offload = tls_commands_offload(values->commands.list, values->commands.n),
        .verify = values->verify ? TLS_VERIFY_ON : TLS_VERIFY_OFF,
        .verify_depth = (unsigned)values->verify_depth,
        .client_ca = TLS_NO_FILE,
        .trusted = ssl_file_index(apply, values->trusted_certificate),
        .crl = ssl_file_index(apply, values->crl),
        .dhparam = TLS_NO_FILE,
        .passwords = ssl_file_index(apply, values->passwords),
        .tickets = values->reuses_sessions != 0,
        .key_log = ssl_key_log(apply, values->key_log),
    };
    assert(profile->versions != 0);
    if (!is_named)
        return;
    ssl_make_named(apply, &profile->named, 1);
    ssl_add_named(apply, &profile->named, &values->certificate, &values->key);
}

void ssl_make_clients(struct apply *apply)
{
    const struct ssl_conf *conf = feature_conf(apply, FEATURE_SSL);
    struct tls_profiles *profiles = &apply->cycle->tls;

    for (struct ssl_client *client = conf->clients; client != NULL; client = client->next) {
        struct tls_profile *profile = &profiles->list[profiles->n];

        fill_client_profile(apply, client, profile);
        profile->index = profiles->n++;
        client->shown.profile = profile;
    }
}

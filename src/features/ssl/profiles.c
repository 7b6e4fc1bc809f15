/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the profiles of the cycle of the values of servers, when all servers are read.
 *
 * Responsible for what belongs together: certificates and keys, verification and its authorities,
 * `listen ... ssl` and a certificate. Servers without a directive of TLS of their own share a
 * profile. */
#include "features/features.h"
#include "features/server_name/server_name.h"
#include "features/ssl/handshake.h"
#include "features/ssl/ssl.h"
#include "settings/listen.h"

#include <assert.h>
#include <string.h>

/* Returns the word of a directive in force for the server, for a message. */
static const struct conf_word *directive_word(const struct scope *server, const char *name)
{
    const struct scope_entry *seen;

    for (const struct scope *scope = server; scope != NULL; scope = scope->outer)
        STAILQ_FOREACH (seen, &scope->seen, link)
            if (strcmp(seen->setting->name, name) == 0)
                return &seen->directive->name;
    return &server->directive->name;
}

/* Reports values of a server that do not go together; returns whether all do. */
static bool check_values(
    struct apply *apply, const struct scope *server, const struct ssl_values *values)
{
    bool verifies =
        values->verify_client == TLS_VERIFY_ON || values->verify_client == TLS_VERIFY_OPTIONAL;

    if (values->keys.n < values->certificates.n) {
        const struct conf_word *alone = values->certificates.list[values->keys.n].word;

        report_error(apply->report, alone,
            "no \"ssl_certificate_key\" is defined for certificate \"%s\"", alone->text);
        return false;
    }
    if (values->keys.n > values->certificates.n)
        report_warn(apply->report, values->keys.list[values->certificates.n].word,
            "\"ssl_certificate_key\" without a certificate, ignored");
    if (values->stapling && values->stapling_files.n == 0)
        report_warn(apply->report, directive_word(server, "ssl_stapling"),
            "\"ssl_stapling\" ignored, no \"ssl_stapling_file\" is defined, and no OCSP responder "
            "is "
            "asked");
    if (verifies && values->client_certificate == NULL && values->trusted_certificate == NULL) {
        report_error(apply->report, directive_word(server, "ssl_verify_client"),
            "no ssl_client_certificate or ssl_trusted_certificate for ssl_verify_client");
        return false;
    }
    return true;
}

/* Gives the profile its pairs. */
static void make_pairs(
    struct apply *apply, const struct ssl_values *values, struct tls_profile *profile)
{
    unsigned n = values->certificates.n, named_n = 0;

    for (unsigned i = 0; i < n; i++)
        named_n += ssl_is_named(&values->certificates.list[i], &values->keys.list[i]);
    ssl_make_named(apply, &profile->named, named_n);
    if (n > named_n)
        profile->pairs = apply_alloc(apply, (n - named_n) * sizeof(*profile->pairs));
    for (unsigned i = 0; i < n; i++) {
        const struct ssl_path *certificate = &values->certificates.list[i],
                              *key = &values->keys.list[i];

        if (ssl_is_named(certificate, key))
            ssl_add_named(apply, &profile->named, certificate, key);
        else if (profile->pairs != NULL)
            ssl_fill_pair(apply, &profile->pairs[profile->pair_n++], certificate->word, key->word,
                values->passwords);
    }
}

/* Returns the indexes of files; NULL: there are none. */
static uint32_t *make_indexes(struct apply *apply, const struct ssl_words *words)
{
    uint32_t *indexes = words->n > 0 ? apply_alloc(apply, words->n * sizeof(*indexes)) : NULL;

    for (unsigned i = 0; indexes != NULL && i < words->n; i++)
        indexes[i] = ssl_file_index(apply, words->list[i]);
    return indexes;
}

static void fill_profile(struct apply *apply, const struct scope *server,
    const struct ssl_values *values, struct tls_profile *profile)
{
    struct tls_profile own = { .named.cache = values->cache };

    make_pairs(apply, values, &own);
    *profile = (struct tls_profile) {
        .at = ssl_place(apply, &server->directive->name),
        .pairs = own.pairs,
        .pair_n = own.pair_n,
        .named = own.named,
        .versions = (uint8_t)values->versions,
        .prefer_server_ciphers = values->prefer_server_ciphers != 0,
        .reject = values->reject_handshake != 0,
        .ciphers = values->ciphers,
        .groups = values->curves,
        .alpn = values->alpn.p,
        .alpn_n = values->alpn.n,
        .commands = values->commands.list,
        .command_n = values->commands.n,
        .offload = tls_commands_offload(values->commands.list, values->commands.n),
        .verify = (enum tls_verify)values->verify_client,
        .verify_depth = (unsigned)values->verify_depth,
        .client_ca = ssl_file_index(apply, values->client_certificate),
        .trusted = ssl_file_index(apply, values->trusted_certificate),
        .crl = ssl_file_index(apply, values->crl),
        .dhparam = ssl_file_index(apply, values->dhparam),
        .passwords = ssl_file_index(apply, values->passwords),
        .tickets = values->session_tickets != 0,
        .ticket_keys = make_indexes(apply, &values->ticket_keys),
        .ticket_key_n = values->ticket_keys.n,
        .stapling_files = values->stapling ? make_indexes(apply, &values->stapling_files) : NULL,
        .stapling_file_n = values->stapling ? values->stapling_files.n : 0,
        .session_timeout = (uint32_t)(values->session_timeout / 1000),
        .key_log = ssl_key_log(apply, values->key_log),
        .handshake_timeout = (uint64_t)values->handshake_timeout,
        .facts = ((const struct ssl_conf *)feature_conf(apply, FEATURE_SSL))->facts,
    };
    assert(profile->versions != 0);
}

/* Whether the server itself has a directive of the feature. */
static bool has_own_values(const struct scope *server)
{
    const struct scope_entry *seen;

    STAILQ_FOREACH (seen, &server->seen, link)
        if (seen->setting->feature == 1 + FEATURE_SSL)
            return true;
    return false;
}

/* Whether the server can have a handshake. */
static bool has_tls(const struct scope *server)
{
    const struct ssl_values *values = feature_values(server, FEATURE_SSL);

    return values->certificates.n > 0 || values->reject_handshake;
}

/* Returns how many profiles the servers have, at most. */
static unsigned count_profiles(const struct scope *stream)
{
    const struct scope *server;
    unsigned n = 0;
    bool common = false;

    STAILQ_FOREACH (server, &stream->servers, link) {
        bool own = has_own_values(server);

        n += has_tls(server) && own;
        common = common || (has_tls(server) && !own);
    }
    return n + common;
}

/* Gives the server its profile, in the room that was counted. */
static void give_profile(struct apply *apply, struct scope *server)
{
    const struct ssl_values *values = feature_values(server, FEATURE_SSL);
    struct ssl_conf *conf = feature_conf(apply, FEATURE_SSL);
    struct tls_profiles *profiles = &apply->cycle->tls;
    bool own = has_own_values(server);
    struct tls_profile *profile;

    assert(has_tls(server));
    if (!own && conf->common != NULL) {
        server->server->tls = conf->common;
        return;
    }
    if (!check_values(apply, server, values))
        return;
    profile = &profiles->list[profiles->n];
    fill_profile(apply, server, values, profile);
    profile->index = profiles->n++;
    server->server->tls = profile;
    if (!own)
        conf->common = profile;
}

/* Whether a variable of the feature is used; adds the facts that used ones need. */
static bool uses_variables(struct variables *variables, uint32_t *facts)
{
    struct variable *variable = NULL;
    bool any = false;

    while ((variable = variables_next(variables, variable)) != NULL)
        for (const struct variable_row *row = variables_ssl; row->name != NULL; row++)
            if (variable->index != 0 && variable->get == row->get) {
                *facts |= (uint32_t)variable->number;
                any = true;
            }
    return any;
}

/* Whether a protocol asks for what sessions know of their TLS; adds the facts for that. */
static bool needs_facts(struct apply *apply, const struct scope *stream, uint32_t *facts)
{
    uint64_t needs = apply->cycle->stream.needs;
    const struct scope *scope;
    bool keeps = false;

    STAILQ_FOREACH (scope, &stream->servers, link) {
        const struct server *server = scope->server;
        const fb_protocol *protocol = server->protocol;

        needs |= server->needs | (protocol != NULL ? protocol->needs : 0);
        keeps |= protocol != NULL && (protocol->flags & FB_KEEPS_TLS) != 0;
    }
    if (needs & FB_NEEDS_TLVS)
        *facts |= TLS_FACT(TLS_FACT_COMMON_NAME) | TLS_FACT(TLS_FACT_OWN_KEY) |
                  TLS_FACT(TLS_FACT_OWN_ALGORITHM);
    if (keeps || (needs & FB_NEEDS_CERTIFICATES))
        *facts |= TLS_FACT_PEER;
    return keeps || (needs & (FB_NEEDS_TLVS | FB_NEEDS_CERTIFICATES)) != 0;
}

/* Reports a server without a certificate whose protocol starts TLS. */
static void check_needed_tls(struct apply *apply, const struct scope *server)
{
    const struct ssl_values *values = feature_values(server, FEATURE_SSL);

    if ((server->server->needs & FB_NEEDS_TLS) != 0 && values->certificates.n == 0)
        report_error(apply->report, &server->directive->name,
            "no \"ssl_certificate\" is defined for protocol \"%s\", which starts TLS",
            server->server->protocol->name);
}

void ssl_make_profiles(struct apply *apply, struct scope *stream)
{
    struct ssl_conf *conf = feature_conf(apply, FEATURE_SSL);
    bool keeps = uses_variables(apply->cycle->stream.variables, &conf->facts);
    struct scope *server;
    unsigned n = count_profiles(stream) + ssl_count_challenges(stream) + conf->client_n;

    keeps |= needs_facts(apply, stream, &conf->facts);
    STAILQ_FOREACH (server, &stream->servers, link) { /* a client may be passed on */
        check_needed_tls(apply, server);
        server->server->keeps_tls = keeps;
        server->server->keeps_certificate = (conf->facts & TLS_FACT_PEER) != 0;
    }
    if (!apply_is_whole(apply, stream) || n == 0)
        return;
    apply->cycle->tls.list = apply_alloc(apply, n * sizeof(struct tls_profile));
    if (apply->cycle->tls.list == NULL)
        return;
    STAILQ_FOREACH (server, &stream->servers, link)
        if (apply_is_whole(apply, server) && has_tls(server))
            give_profile(apply, server);
    ssl_make_challenges(apply, stream);
    ssl_make_clients(apply);
    assert(apply->cycle->tls.n <= n);
}

/* Adds the handshake to what the sessions of a server begin with, once. */
static void add_handshake(struct apply *apply, struct server *server)
{
    const struct phase_handler *handler = server->before;

    while (handler != NULL && handler->run != ssl_handshake_begin)
        handler = handler->next;
    if (handler == NULL)
        feature_add_handler(apply, server, PHASE_SSL, ssl_handshake_begin, NULL);
}

/* Whether two servers want the same of clients' certificates. */
static bool verify_alike(const struct server *a, const struct server *b)
{
    const struct ssl_values *left = server_feature(a, FEATURE_SSL),
                            *right = server_feature(b, FEATURE_SSL);

    if (left->verify_client != right->verify_client)
        return false;
    return left->verify_client == TLS_VERIFY_OFF ||
           (left->verify_depth == right->verify_depth && left->crl == right->crl &&
               left->client_certificate == right->client_certificate &&
               left->trusted_certificate == right->trusted_certificate);
}

/* Makes a server of an address have handshakes, without a profile by the default server's; `listen`
 * is the server's. */
static void bind_server(struct apply *apply, struct binding *binding,
    const struct server *default_server, const struct listen_address *listen)
{
    const struct tls_profile *profile = default_server->tls;

    binding->ssl = true;
    binding->tls = profile;
    if (binding->server->tls != NULL || !apply_is_whole(apply, listen->scope))
        return;
    if (profile == NULL || profile->pair_n + profile->named.n == 0)
        report_error(apply->report, listen->word,
            "no \"ssl_certificate\" is defined for the \"listen ... ssl\" directive");
    else if (!verify_alike(binding->server, default_server))
        report_error(apply->report, listen->word,
            "a server without \"ssl_certificate\" has the TLS of the default server, and cannot "
            "verify clients in another way");
}

/* Binds the servers of an address, the default server first. */
static void bind_address(struct apply *apply, const struct listen_address *first)
{
    struct binding *binding = first->binding;
    const struct server_names *names = binding->names;

    add_handshake(apply, binding->server);
    bind_server(apply, binding, binding->server, first->chosen);
    for (unsigned i = 1; names != NULL && i < names->n; i++)
        bind_server(apply, names->servers[i].binding, binding->server, names->servers[i].listen);
}

/* Takes the key logs away from all profiles under "sandbox strict", with a warning. */
static void deny_key_logs(struct apply *apply)
{
    struct tls_profiles *profiles = &apply->cycle->tls;
    bool any = false;

    for (unsigned i = 0; i < profiles->n; i++) {
        any = any || profiles->list[i].key_log != NULL;
        profiles->list[i].key_log = NULL;
    }
    if (any)
        report_warn(apply->report, NULL,
            "no keys of sessions are written to files under \"sandbox strict\"");
}

void ssl_bind(struct apply *apply, struct scope *stream)
{
    const struct scope *server;
    const struct listen_address *listen;

    if (apply->cycle->core.sandbox == SANDBOX_STRICT)
        deny_key_logs(apply);
    STAILQ_FOREACH (server, &stream->servers, link)
        STAILQ_FOREACH (listen, &server->listens, link)
            if (listen->binding != NULL && listen->ssl)
                bind_address(apply, listen);
}

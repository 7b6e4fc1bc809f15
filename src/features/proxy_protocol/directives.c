/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of `set_real_ip_from`, and the variables of PROXY headers. A name is resolved when
 * the configuration is read, as a name of `listen` is. */
#include "features/proxy_protocol/proxy_protocol.h"
#include "features/proxy_protocol/variables.h"

#include "features/access/access.h"
#include "features/features.h"
#include "session/session.h"
#include "settings/listen.h"
#include "settings/lookup.h"
#include "settings/set_value.h"

#include <string.h>

/* Returns the place behind the last block; the memory doubles when it is full. NULL after a
 * report. */
static struct address_block *add_block(struct apply *apply, struct trusted_setting *trusted)
{
    size_t n = (size_t)trusted->n;
    struct address_block *larger;

    assert((n == 0) == (trusted->blocks == NULL));
    if ((n & (n - 1)) == 0) {
        larger = apply_alloc(apply, (n > 0 ? 2 * n : 1) * sizeof(*larger));
        if (larger == NULL)
            return NULL;
        if (n > 0)
            memcpy(larger, trusted->blocks, n * sizeof(*larger));
        trusted->blocks = larger;
    }
    trusted->n++;
    return &trusted->blocks[n];
}

static int realip_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct address_block found[LOOKUP_ADDRESSES_MAX], *block;
    unsigned n;

    if (lookup_clients(apply, directive, found, &n) == -1)
        return -1;
    for (unsigned i = 0; i < n; i++) {
        block = add_block(apply, field);
        if (block == NULL)
            return -1;
        *block = found[i];
    }
    return 0;
}

static void realip_finish(struct apply *apply, struct scope *stream)
{
    struct variables *variables = apply->cycle->stream.variables;
    struct variable *variable = NULL;

    (void)stream;
    while ((variable = variables_next(variables, variable)) != NULL) {
        if (variable->index == 0 || !variables_proxy_has(variable))
            continue;
        variables->uses_proxy = true;
        if (!variables_proxy_knows(variable))
            report_error(apply->report, variable->used_at,
                "unknown \"%s\" variable: expected the number "
                "of a type, 0x00 to 0xff",
                variable->name);
    }
}

/* Gives the bindings of addresses with `proxy_protocol` the callbacks for the header. */
static void realip_bind(struct apply *apply, struct scope *stream)
{
    const struct scope *server;
    const struct listen_address *listen;

    (void)apply;
    STAILQ_FOREACH (server, &stream->servers, link)
        STAILQ_FOREACH (listen, &server->listens, link)
            if (listen->binding != NULL && listen->proxy_protocol)
                listen->binding->ops = &proxy_protocol_ops;
}

/* The rules are good for a server that proxies alone may reach: a notice. */
static void note_rules_of_proxies(struct apply *apply, const struct scope *server)
{
    const struct access_values *access = feature_values(server, FEATURE_ACCESS);
    const struct proxy_protocol_values *values = feature_values(server, FEATURE_PROXY_PROTOCOL);
    const struct listen_address *listen;

    if (access->access == NULL || values->trusted.n > 0)
        return;
    STAILQ_FOREACH (listen, &server->listens, link)
        if (listen->proxy_protocol) {
            report_notice(apply->report, &server->directive->name,
                "\"allow\" and \"deny\" of this server are for the addresses of proxies: without "
                "\"set_real_ip_from\" no PROXY header is believed");
            return;
        }
}

static void realip_warn(struct apply *apply, const struct scope *stream)
{
    const struct scope *server;

    STAILQ_FOREACH (server, &stream->servers, link)
        note_rules_of_proxies(apply, server);
}

static const struct setting rows[] = {
    { "proxy_protocol_timeout", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = set_msec,
        .offset = offsetof(struct proxy_protocol_values, timeout), .size = sizeof(int64_t),
        .least_value = 1, .greatest_value = INT64_MAX, .initial = "30s" },
    { "set_real_ip_from", CONTEXT_STREAM | CONTEXT_SERVER, 1, 1, .set = realip_set, .repeats = true,
        .offset = offsetof(struct proxy_protocol_values, trusted),
        .size = sizeof(struct trusted_setting), .unset = "none" },
    { .name = NULL },
};

const struct feature proxy_protocol_feature = {
    .name = "proxy_protocol",
    .rows = rows,
    .server_size = sizeof(struct proxy_protocol_values),
    .variables = variables_proxy,
    .finish = realip_finish,
    .bind = realip_bind,
    .warn = realip_warn,
};

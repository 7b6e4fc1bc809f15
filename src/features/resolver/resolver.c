/* SPDX-License-Identifier: BSD-2-Clause */
/* `resolver`: servers of names, asked by workers. The system's resolver is the first of the list;
 * resolvers without users are not marked, and cost a worker nothing. */
#include "features/resolver/resolver.h"

#include "base/check.h"
#include "features/features.h"
#include "names/client.h"
#include "settings/blocks.h"
#include "settings/lookup.h"
#include "settings/parameter.h"
#include "settings/set_value.h"

#include <limits.h>
#include <string.h>

#define NAMES_PORT 53
#define SERVERS_MAX 16
#define VALID_MAX INT64_C(31536000000) /* a year */
#define TIMEOUT_MS 30000               /* default of a stream {} without the directive */

static const struct parameter parameters[] = {
    { "ipv4=", PARAMETER_SWITCH, offsetof(struct names_setting, ipv4), 0, 0,
        "\"ipv4=on\" or \"ipv4=off\"" },
    { "ipv6=", PARAMETER_SWITCH, offsetof(struct names_setting, ipv6), 0, 0,
        "\"ipv6=on\" or \"ipv6=off\"" },
    { "valid=", PARAMETER_MSEC, offsetof(struct names_setting, valid), 1, VALID_MAX,
        "a time after \"valid=\"" },
    { .name = NULL },
};

/* Appends a server to the text of all. */
static int add_server(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    struct names_setting *resolver)
{
    const char *text = directive->args[arg].text, *wrong, *all;
    char name[ADDRESS_TEXT];
    struct address address;

    if (strncmp(text, "unix:", 5) == 0)
        return set_bad_value(apply, directive, arg, "expected the address of a server of names");
    wrong = lookup_host(apply, text, NAMES_PORT, &address);
    if (wrong != NULL)
        return set_bad_value(apply, directive, arg, "%s", wrong);
    address_format(&address, true, name);
    all = resolver->servers == NULL ? apply_strdup(apply, name)
                                    : apply_taken(apply, arena_printf(apply->cycle->arena, "%s,%s",
                                                             resolver->servers, name));
    if (all == NULL)
        return -1;
    resolver->servers = all;
    needs_add_port(apply, address_port(&address));
    return 0;
}

static int set_arguments(
    struct apply *apply, const struct conf_directive *directive, struct names_setting *resolver)
{
    unsigned servers = 0;

    for (unsigned i = 0; i < directive->arg_n; i++) {
        bool is_server = parameter_find(parameters, directive->args[i].text) == NULL;

        servers += is_server;
        if (servers > SERVERS_MAX)
            return set_bad_value(apply, directive, i, "there are %d servers already", SERVERS_MAX);
        if ((is_server ? add_server(apply, directive, i, resolver)
                       : parameter_set(apply, directive, i, parameters, NULL, resolver)) == -1)
            return -1;
    }
    if (servers == 0)
        return set_bad_value(apply, directive, 0, "expected the address of a server of names");
    if (!resolver->ipv4 && !resolver->ipv6)
        return set_bad_value(
            apply, directive, directive->arg_n - 1, "\"ipv4\" and \"ipv6\" cannot both be off");
    return 0;
}

int resolver_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct names_setting *last = &apply->cycle->stream.system;
    struct names_setting *resolver = apply_alloc(apply, sizeof(*resolver));

    if (resolver == NULL)
        return -1;
    if (!names_client_built())
        return report_error(apply->report, &directive->name,
            "\"resolver\" directive needs c-ares, which this build of forkbeard lacks");
    *resolver = (struct names_setting) { .ipv4 = true, .ipv6 = true };
    if (set_arguments(apply, directive, resolver) == -1)
        return -1;
    while (last->next != NULL)
        last = last->next;
    last->next = resolver;
    *(const struct names_setting **)field = resolver;
    return 0;
}

/* Adds users to a resolver. Name servers that workers ask directly are the sandbox's affair. */
void resolver_use(struct apply *apply, const struct names_setting *wanted, enum names_users users)
{
    struct names_setting *resolver = &apply->cycle->stream.system;

    while (resolver != NULL && resolver != wanted)
        resolver = resolver->next;
    assert(resolver != NULL);
    resolver->users |= users;
    if (users == NAMES_OF_SESSIONS)
        apply->cycle->needs.rights |= FB_NEEDS_RESOLVER;
    if (resolver->servers == NULL)
        needs_add_port(apply, NAMES_PORT);
}

static bool asks(const struct server *server)
{
    return ((server->protocol->needs | server->needs) & FB_NEEDS_RESOLVER) != 0;
}

/* A protocol asks the resolver of each of its servers and of stream {}; without a declared need
 * only resolvers written by the operator. */
static void resolver_finish(struct apply *apply, struct scope *stream)
{
    struct stream_settings *settings = &apply->cycle->stream;
    struct server *server;

    settings->system.ipv4 = settings->system.ipv6 = true;
    settings->resolver = stream->settings->resolver;
    settings->resolver_timeout = stream->settings->resolver_timeout;
    if (settings->resolver == NULL)
        settings->resolver = &settings->system;
    if (settings->resolver_timeout == 0)
        settings->resolver_timeout = TIMEOUT_MS;
    if (names_client_built() && (settings->needs & FB_NEEDS_RESOLVER))
        resolver_use(apply, settings->resolver, NAMES_OF_SESSIONS);
    STAILQ_FOREACH (server, &settings->servers, link) {
        if (server->settings.resolver == NULL)
            server->settings.resolver = &settings->system;
        if (server->protocol == NULL || !names_client_built())
            continue;
        if (asks(server) || settings->resolver != &settings->system)
            resolver_use(apply, settings->resolver, NAMES_OF_SESSIONS);
        if (asks(server) || server->settings.resolver != &settings->system)
            resolver_use(apply, server->settings.resolver, NAMES_OF_SESSIONS);
    }
}

static const struct setting rows[] = {
    { "resolver", CONTEXT_SERVERS, 1, UCHAR_MAX, .set = resolver_set,
        SETTING_FIELD(struct server_settings, resolver), .unset = "the system's" },
    { "resolver_timeout", CONTEXT_SERVERS, 1, 1, .set = set_msec,
        SETTING_FIELD(struct server_settings, resolver_timeout), .least_value = 1,
        .greatest_value = INT64_MAX, .initial = "30s" },
    { .name = NULL },
};

const struct feature resolver_feature = {
    .name = "resolver",
    .rows = rows,
    .finish = resolver_finish,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* Prepares the passing of clients from server to server. A configuration without passing protocols
 * gets no list, and sessions begin as ever. Finds circles: servers whose clients never leave the
 * configuration, because all addresses of their groups are listened on, by servers of this kind.
 *
 * An address counts where it is the daemon's for certain: as it was written, or of the loopback
 * interface where a wildcard listens. A text with variables, or a name, may lead elsewhere. */
#include "features/pass/pass.h"

#include "features/features.h"
#include "features/server_name/server_name.h"
#include "features/upstream/upstream.h"
#include "session/session.h"
#include "settings/apply.h"
#include "settings/protocol.h"

#include <arpa/inet.h>

static bool address_is_loopback(const struct address *address)
{
    if (address->any.sa_family == AF_INET)
        return ntohl(address->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address->in6.sin6_addr);
}

/* Returns the server of ours that an address of a group leads to for certain, or NULL. */
static const struct server *find_own(
    const struct binding_list *list, const struct upstream_server *to)
{
    const struct address *address = to->target != NULL ? &to->target->address : NULL;
    const struct binding *binding = address != NULL ? pass_bindings_find(list, address) : NULL;

    if (binding == NULL || binding->names != NULL ||
        (address_is_wildcard(&binding->address) && !address_is_wildcard(address) &&
            !address_is_loopback(address)))
        return NULL;
    return binding->server;
}

/* Whether all directives of the server that lead somewhere lead in a circle, as is known so far. */
static bool server_circles(const struct apply *apply, const struct server *server)
{
    const struct upstream_use *use;
    bool any = false;

    STAILQ_FOREACH (use, &upstream_conf_of(apply)->uses, link)
        if (use->server == server) {
            if (!use->circles)
                return false;
            any = true;
        }
    return any;
}

/* Whether a directive leads to servers of ours alone; with `in_circle` to such as circle. */
static bool leads_home(const struct apply *apply, const struct binding_list *list,
    const struct upstream_use *use, bool in_circle)
{
    const struct upstream_server *to;
    bool any = false;

    if (use->where->upstream == NULL)
        return false;
    STAILQ_FOREACH (to, &use->where->upstream->servers, link) {
        const struct server *server;

        if (to->down)
            continue;
        server = find_own(list, to);
        if (server == NULL || (in_circle && !server_circles(apply, server)))
            return false;
        any = true;
    }
    return any;
}

static void check_circles(struct apply *apply)
{
    struct binding_list list = { .n = 0 };
    struct upstream_use *use;
    bool changed = true;

    if (apply->report->error_n > 0 || STAILQ_EMPTY(&upstream_conf_of(apply)->uses) ||
        pass_bindings_list(apply, &list) == -1)
        return;
    STAILQ_FOREACH (use, &upstream_conf_of(apply)->uses, link)
        use->circles = use->server != NULL && leads_home(apply, &list, use, false);
    while (changed) {
        changed = false;
        STAILQ_FOREACH (use, &upstream_conf_of(apply)->uses, link)
            if (use->circles && !leads_home(apply, &list, use, true)) {
                use->circles = false;
                changed = true;
            }
    }
    STAILQ_FOREACH (use, &upstream_conf_of(apply)->uses, link)
        if (use->circles)
            report_error(apply->report, use->word,
                "\"%s\" leads clients in a circle of this configuration's own servers", use->text);
}

/* ---- Passes ---- */

static bool protocol_passes(const struct pass_conf *conf, const fb_protocol *protocol)
{
    const struct pass_use *use;

    STAILQ_FOREACH (use, &conf->uses, link)
        if (use->protocol == protocol)
            return true;
    return false;
}

/* Whether the addresses of some servers are known to the daemon alone. */
static bool are_unknown(const struct scope *stream)
{
    const struct scope *server;

    STAILQ_FOREACH (server, &stream->servers, link)
        if (server->listens_unknown)
            return true;
    return false;
}

/* Prepares a binding, and the server, whose protocol may pass clients; returns whether it may. */
static bool prepare_binding(const struct pass_conf *conf, struct binding *binding, bool connects)
{
    struct server *server = binding->server;

    server->passes = protocol_passes(conf, server->protocol);
    if (!server->passes)
        return false;
    server->connects = server->connects || connects; /* perhaps to one of those that do */
    server->proceed = pass_begin_client;
    if (binding->ops == &session_conn_ops)
        binding->ops = &pass_conn_ops;
    return true;
}

static void pass_servers(struct apply *apply, const struct scope *stream)
{
    const struct pass_conf *conf = feature_conf(apply, FEATURE_PASS);
    bool connects = stream_connects(&apply->cycle->stream);
    struct binding_list *list;
    struct pass_use *use;

    if (STAILQ_EMPTY(&conf->uses) || apply->report->error_n > 0)
        return;
    list = apply_alloc(apply, sizeof(*list));
    if (list == NULL || pass_bindings_list(apply, list) == -1)
        return;
    for (unsigned i = 0; i < list->n; i++) {
        struct binding *binding = list->places[i].binding;
        const struct server_names *names = binding->names;

        prepare_binding(conf, binding, connects);
        for (unsigned k = 1; names != NULL && k < names->n; k++)
            if (prepare_binding(conf, names->servers[k].binding, connects) && connects)
                binding->server->connects = true;
    }
    STAILQ_FOREACH (use, &conf->uses, link) {
        struct fb_listener *listener = use->listener;

        listener->bindings = list;
        if (listener->address.length > 0 && !are_unknown(stream) &&
            pass_bindings_find(list, &listener->address) == NULL)
            report_error(apply->report, use->word, "no server listens on \"%s\"", use->word->text);
    }
}

static void pass_begin(struct apply *apply)
{
    struct pass_conf *conf = feature_conf(apply, FEATURE_PASS);

    STAILQ_INIT(&conf->uses);
}

static void pass_bind(struct apply *apply, struct scope *stream)
{
    pass_servers(apply, stream);
    check_circles(apply);
}

const struct feature pass_feature = {
    .name = "pass",
    .conf_size = sizeof(struct pass_conf),
    .begin = pass_begin,
    .bind = pass_bind,
};

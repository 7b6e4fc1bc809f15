/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks for what no session will ever meet, and for what each worker does by itself. Only a
 * configuration without mistakes is looked at: what is missing may stand where one was found. */
#include "settings/warnings.h"

#include "base/check.h"
#include "settings/apply.h"
#include "settings/listen.h"
#include "stream/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PREREAD "ssl_preread_"

static void warn_of_preread(struct apply *apply, const struct scope *stream)
{
    struct variables *variables = &apply->cycle->stream.variables;
    struct variable *variable = NULL;
    const struct scope *server;

    STAILQ_FOREACH (server, &stream->servers, link)
        if (server->settings->ssl_preread != 0)
            return;
    while ((variable = variables_next(variables, variable)) != NULL)
        if (variable->index != 0 && strncmp(variable->name, PREREAD, strlen(PREREAD)) == 0)
            report_warn(apply->report, variable->used_at,
                "$%s has no value in any session: no server has \"ssl_preread on\"",
                variable->name);
}

/* The rules are good for a server that proxies alone may reach: a notice. */
static void note_rules_of_proxies(struct apply *apply, const struct scope *server)
{
    const struct listen_address *listen;

    if (server->settings->access == NULL || server->settings->trusted.n > 0)
        return;
    STAILQ_FOREACH (listen, &server->listens, link)
        if (listen->proxy_protocol) {
            report_notice(apply->report, &server->directive->name,
                "\"allow\" and \"deny\" of this server are for the addresses of proxies: without "
                "\"set_real_ip_from\" no PROXY header is believed");
            return;
        }
}

static int compare_names(const void *a, const void *b)
{
    const struct upstream_server *const *first = a, *const *second = b;

    return strcmp((*first)->name, (*second)->name);
}

static void warn_of_twins(struct apply *apply, const struct upstream *upstream)
{
    const struct upstream_server **servers =
        apply_alloc(apply, upstream->server_n * sizeof(struct upstream_server *));
    const struct upstream_server *server;
    unsigned n = 0;

    if (servers == NULL)
        return;
    STAILQ_FOREACH (server, &upstream->servers, link)
        servers[n++] = server;
    assert(n == upstream->server_n);
    qsort(servers, n, sizeof(*servers), compare_names);
    for (unsigned i = 1; i < n; i++)
        if (strcmp(servers[i - 1]->name, servers[i]->name) == 0)
            report_warn(apply->report, upstream->word,
                "server %s stands twice in upstream \"%s\": \"weight=\" gives it more sessions",
                servers[i]->name, upstream->name);
}

/* Sessions wait for room at a server, for an address, and for one of several servers that has
 * failed or is unhealthy. */
static void warn_of_queue(struct apply *apply, const struct upstream *upstream)
{
    const struct upstream_server *server;

    STAILQ_FOREACH (server, &upstream->servers, link)
        if (server->max_conns > 0 || server->host != NULL || server->is_checked ||
            (server->max_fails > 0 && upstream->server_n > 1))
            return;
    if (upstream->queue > 0)
        report_warn(apply->report, upstream->word,
            "no session ever waits in the \"queue\" of upstream \"%s\": no server of it has "
            "\"max_conns=\", a name or a health check",
            upstream->name);
}

void warnings_of_stream(struct apply *apply, const struct scope *stream)
{
    const struct upstream *upstream;
    const struct scope *server;

    assert(stream->at == CONTEXT_STREAM);
    if (apply->report->error_n > 0 || apply->cut || apply->cycle->source.partial)
        return;
    warn_of_preread(apply, stream);
    STAILQ_FOREACH (server, &stream->servers, link)
        note_rules_of_proxies(apply, server);
    STAILQ_FOREACH (upstream, &apply->cycle->stream.upstreams, link) {
        if (upstream->is_single)
            continue;
        if (!upstream->is_used)
            report_warn(
                apply->report, upstream->word, "nothing leads to upstream \"%s\"", upstream->name);
        warn_of_twins(apply, upstream);
        warn_of_queue(apply, upstream);
    }
}

/* Returns a parameter that the servers of a group share by its zone alone; NULL: none has any. */
static const char *shared_parameter(const struct upstream *upstream)
{
    const struct upstream_server *server;

    STAILQ_FOREACH (server, &upstream->servers, link)
        if (server->max_conns > 0 || server->max_fails > 1)
            return server->max_conns > 0 ? "max_conns=" : "max_fails=";
    return NULL;
}

void warnings_of_workers(struct apply *apply)
{
    int64_t workers = apply->cycle->sizing.workers;
    const struct upstream *upstream;
    const char *parameter;

    STAILQ_FOREACH (upstream, &apply->cycle->stream.upstreams, link) {
        if (workers == 1 || upstream->zone != NULL)
            continue;
        parameter = shared_parameter(upstream);
        if (parameter != NULL)
            report_warn(apply->report, upstream->word,
                "\"%s\" in upstream \"%s\" is counted by each of %" PRId64
                " workers alone: a \"zone\" has them count together",
                parameter, upstream->name, workers);
    }
}

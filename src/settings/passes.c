/* SPDX-License-Identifier: BSD-2-Clause */
/* Prepares the passing of clients from server to server. A configuration in which no protocol asks
 * for that gets no list, and its sessions begin as ever. */
#include "settings/passes.h"

#include "settings/apply.h"
#include "stream/session.h"

#include <string.h>

static unsigned count_bindings(const struct listeners *listeners)
{
    const struct listener *listener;
    const struct binding *binding;
    unsigned n = 0;

    STAILQ_FOREACH (listener, &listeners->list, link)
        STAILQ_FOREACH (binding, &((const struct port *)listener->owner)->bindings, link)
            n++;
    return n;
}

int passes_list_bindings(struct apply *apply, struct binding_list *list)
{
    struct listeners *listeners = &apply->cycle->stream.listeners;
    struct listener *listener;
    struct binding *binding;

    list->places = apply_alloc(apply, (count_bindings(listeners) + 1) * sizeof(*list->places));
    if (list->places == NULL)
        return -1;
    STAILQ_FOREACH (listener, &listeners->list, link)
        STAILQ_FOREACH (binding, &((struct port *)listener->owner)->bindings, link)
            list->places[list->n++] = (struct binding_place) {
                .binding = binding,
                .takes_ipv4 = address_is_wildcard(&binding->address) && !listener->options.ipv6only,
            };
    session_pass_sort(list);
    return 0;
}

static bool passes(const struct apply *apply, const fb_protocol *protocol)
{
    const struct pass_use *use;

    STAILQ_FOREACH (use, &apply->passes, link)
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

void passes_finish(struct apply *apply, struct scope *stream)
{
    bool connects = stream_connects(&apply->cycle->stream);
    struct binding_list *list;
    struct pass_use *use;

    if (STAILQ_EMPTY(&apply->passes) || apply->report->error_n > 0)
        return;
    list = apply_alloc(apply, sizeof(*list));
    if (list == NULL || passes_list_bindings(apply, list) == -1)
        return;
    for (unsigned i = 0; i < list->n; i++) {
        struct binding *binding = list->places[i].binding;

        binding->server->passes = passes(apply, binding->server->protocol);
        if (binding->server->passes && connects) /* perhaps to one of those that do */
            binding->server->connects = true;
        if (binding->server->passes && binding->ops == &session_conn_ops)
            binding->ops = &session_pass_ops;
        if (binding->server->passes)
            binding->server->begin = session_pass_begin;
    }
    STAILQ_FOREACH (use, &apply->passes, link) {
        struct fb_listener *listener = use->listener;

        listener->bindings = list;
        if (listener->address.length > 0 && !are_unknown(stream) &&
            session_pass_find(list, &listener->address) == NULL)
            report_error(apply->report, use->word, "no server listens on \"%s\"", use->word->text);
    }
}

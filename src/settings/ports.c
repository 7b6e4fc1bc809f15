/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes listeners of the servers' `listen` directives. An address has one socket, except that a
 * wildcard's socket takes the clients of the other addresses of its port. */
#include "base/check.h"
#include "net/listener_set.h"
#include "settings/apply.h"
#include "settings/listen.h"
#include "stream/session.h"

#include <string.h>

/* A tree, because a range of ports makes tens of thousands of entries. */
RB_HEAD(listens, listen_address);

static int compare_listens(const struct listen_address *a, const struct listen_address *b)
{
    return address_compare(&a->address, &b->address);
}

RB_GENERATE_INTERNAL(listens, listen_address, node, compare_listens, static __attribute__((unused)))

/* The wildcard whose socket receives what is sent to `narrow`, or NULL. */
static struct listen_address *find_wide(
    struct listens *listens, const struct listen_address *narrow)
{
    struct listen_address wide;

    if (narrow->own_socket || address_is_wildcard(&narrow->address) ||
        narrow->address.any.sa_family == AF_UNIX)
        return NULL;
    memset(&wide, 0, sizeof(wide));
    wide.address.length = narrow->address.length;
    wide.address.any.sa_family = narrow->address.any.sa_family;
    address_set_port(&wide.address, address_port(&narrow->address));
    return RB_FIND(listens, listens, &wide);
}

static void add_binding(
    struct apply *apply, struct listener *listener, const struct listen_address *listen)
{
    struct port *port = listener->owner;
    struct binding *binding = apply_alloc(apply, sizeof(*binding));

    CHECK_KIND(port, PORT_KIND);
    assert(listen->server != NULL);
    if (binding == NULL)
        return;
    binding->kind = BINDING_KIND;
    binding->address = listen->address;
    binding->server = listen->server;
    binding->ops = listen->proxy_protocol ? &session_proxy_ops : &session_conn_ops;
    address_format_zone(&listen->address, binding->text);
    port->several = !STAILQ_EMPTY(&port->bindings);
    STAILQ_INSERT_TAIL(&port->bindings, binding, link);
}

static void add_listener(struct apply *apply, struct listen_address *listen)
{
    struct cycle *cycle = apply->cycle;
    struct listener *listener = listener_create(cycle->arena, &listen->address, &listen->options);
    struct port *port = apply_alloc(apply, sizeof(*port));

    if (listener == NULL)
        report_error(apply->report, NULL, "out of memory");
    if (listener == NULL || port == NULL)
        return;
    listener->options.tcp_nodelay = listen->server->settings.tcp_nodelay != 0;
    port->kind = PORT_KIND;
    STAILQ_INIT(&port->bindings);
    listener->owner = port;
    listener->word = listen->word;
    listen->listener = listener;
    listener_set_add(&cycle->stream.listeners, listener);
    add_binding(apply, listener, listen);
}

/* Reports an address that is already in use. Only the first port of a range is reported. */
static void enter_listen(struct apply *apply, struct listens *listens,
    struct listen_address *listen, const struct conf_word **reported)
{
    const struct listen_address *first = RB_INSERT(listens, listens, listen);
    char text[ADDRESS_TEXT];

    if (first == NULL || listen->word == *reported)
        return;
    *reported = listen->word;
    report_error(apply->report, listen->word,
        "duplicate \"listen\" of %s, it is already used in %s:%u",
        address_format_zone(&listen->address, text), first->word->file->name, first->word->line);
}

/* Enters the addresses of all servers in the tree, and reports mistakes. */
static void collect_addresses(struct apply *apply, struct scope *stream, struct listens *listens)
{
    const struct conf_word *reported = NULL;
    struct scope *server;
    struct listen_address *listen;

    STAILQ_FOREACH (server, &stream->servers, link) {
        if (STAILQ_EMPTY(&server->listens) && !server->listens_unknown &&
            scope_is_whole(apply, server))
            report_error(apply->report, &server->directive->name,
                "no \"listen\" is defined for this server");
        STAILQ_FOREACH (listen, &server->listens, link)
            enter_listen(apply, listens, listen, &reported);
    }
}

void ports_build(struct apply *apply, struct scope *stream)
{
    struct listens listens = RB_INITIALIZER(&listens);
    struct scope *server;
    struct listen_address *listen, *wide;

    assert(stream->at == CONTEXT_STREAM);
    collect_addresses(apply, stream, &listens);
    if (apply->report->error_n > 0)
        return;

    STAILQ_FOREACH (server, &stream->servers, link)
        STAILQ_FOREACH (listen, &server->listens, link)
            if (find_wide(&listens, listen) == NULL)
                add_listener(apply, listen);
    if (apply->report->error_n > 0)
        return;
    STAILQ_FOREACH (server, &stream->servers, link)
        STAILQ_FOREACH (listen, &server->listens, link)
            if ((wide = find_wide(&listens, listen)) != NULL)
                add_binding(apply, wide->listener, listen);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes listeners of the servers' `listen` directives: a socket for each address, but for addresses
 * with a wildcard of the same port. The default server of an address takes the clients. */
#include "base/check.h"
#include "net/listener_open.h"
#include "net/listener_set.h"
#include "session/session.h"
#include "settings/apply.h"
#include "settings/listen.h"

#include <string.h>

/* A tree, because a range of ports makes tens of thousands of entries. */
RB_HEAD(listens, listen_address);

static int compare_listens(const struct listen_address *a, const struct listen_address *b)
{
    return address_compare(&a->address, &b->address);
}

RB_GENERATE_INTERNAL(listens, listen_address, node, compare_listens, static __attribute__((unused)))

/* Returns the wildcard with the socket that receives the clients of `narrow`, or NULL. */
static struct listen_address *find_wide_port(
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

uint32_t ports_next_chain(struct stream_settings *stream)
{
    unsigned n = stream->binding_n++;

    return n < CHAIN_BITS ? UINT32_C(1) << n : 0;
}

static void add_binding(
    struct apply *apply, struct listener *listener, struct listen_address *listen)
{
    struct stream_settings *stream = &apply->cycle->stream;
    struct port *port = listener->owner;
    struct binding *binding = apply_alloc(apply, sizeof(*binding));

    CHECK_KIND(port, PORT_KIND);
    assert(listen->first == NULL && listen->chosen->server != NULL);
    if (binding == NULL)
        return;
    binding->kind = BINDING_KIND;
    binding->address = listen->address;
    binding->server = listen->chosen->server;
    binding->ops = &session_conn_ops;
    binding->stats = listen_stats_make(apply, listen->chosen, "");
    listen->binding = binding;
    address_format_zone(&listen->address, binding->text);
    binding->chain = ports_next_chain(stream);
    if (listen->address.any.sa_family != AF_UNIX)
        stream->listen_ports |= UINT64_C(1) << address_port(&listen->address) % 64;
    port->several = !STAILQ_EMPTY(&port->bindings);
    STAILQ_INSERT_TAIL(&port->bindings, binding, link);
}

static void add_listener(struct apply *apply, struct listen_address *listen)
{
    struct cycle *cycle = apply->cycle;
    struct listener *listener =
        apply_taken(apply, listener_create(cycle->arena, &listen->address, &listen->options));
    struct port *port = apply_alloc(apply, sizeof(*port));

    if (listener == NULL || port == NULL)
        return;
    listener->options.tcp_nodelay = listen->chosen->server->settings.tcp_nodelay != 0;
    port->kind = PORT_KIND;
    STAILQ_INIT(&port->bindings);
    listener->owner = port;
    listener->word = listen->word;
    listen->listener = listener;
    listener_set_add(&cycle->stream.listeners, listener);
    add_binding(apply, listener, listen);
}

/* The addresses of all servers, with the sharing servers. */
struct collection {
    struct listens listens;
    const struct conf_word *reported; /* the last reported word: once is enough for a range */
};

/* Reports why two servers cannot share an address. */
static void report_shared(struct apply *apply, struct collection *all,
    const struct listen_address *listen, const struct listen_address *other, const char *what,
    const char *is)
{
    char text[ADDRESS_TEXT];

    if (listen->word != all->reported)
        report_error(apply->report, listen->word, "duplicate %s %s, %s in %s:%u", what,
            address_format_zone(&listen->address, text), is, other->word->file->name,
            other->word->line);
    all->reported = listen->word;
}

/* Whether neither names nor `default_server` tell the clients of the two servers apart. */
static bool is_same_to_clients(const struct listen_address *a, const struct listen_address *b)
{
    return a->server == b->server ||
           (!a->default_server && !b->default_server && STAILQ_EMPTY(&a->scope->names) &&
               STAILQ_EMPTY(&b->scope->names));
}

/* Whether options of the socket were written, which may be done once for an address. */
static bool has_options(const struct listen_address *listen)
{
    return listen->own_socket && !listen->passed;
}

/* Warns of a parameter that some servers of an address have, and some lack. */
static void warn_of_parameter(
    struct apply *apply, const struct listen_address *listen, const char *name)
{
    char text[ADDRESS_TEXT];

    report_warn(apply->report, listen->word,
        "\"%s\" is in force for all servers of %s, although not all servers have the parameter",
        name, address_format_zone(&listen->address, text));
}

/* Adds a listen to the listens of the address, after `first`. */
static void share_address(struct apply *apply, struct collection *all, struct listen_address *first,
    struct listen_address *listen)
{
    bool quiet = listen->word == all->reported;

    listen->first = first;
    if (is_same_to_clients(first, listen) || is_same_to_clients(first->last, listen)) {
        report_shared(apply, all, listen, first, "\"listen\" of", "the address is already used");
        return;
    }
    if (has_options(listen) && first->options_of != NULL)
        report_shared(apply, all, listen, first->options_of, "listen options for",
            "the options are already given");
    if (listen->default_server && first->chosen->default_server)
        report_shared(apply, all, listen, first->chosen, "default server for",
            "there is already a default server");
    if (listen->proxy_protocol != first->proxy_protocol && !quiet)
        warn_of_parameter(apply, listen, "proxy_protocol");
    if (listen->ssl != first->ssl && !quiet)
        warn_of_parameter(apply, listen, "ssl");
    first->last = listen;
    first->own_socket = first->own_socket || listen->own_socket;
    first->proxy_protocol = first->proxy_protocol || listen->proxy_protocol;
    first->ssl = first->ssl || listen->ssl;
    if (has_options(listen)) {
        first->options_of = listen;
        first->options = listen->options;
    }
    if (listen->default_server)
        first->chosen = listen;
}

static void enter_listen(struct apply *apply, struct collection *all, struct listen_address *listen)
{
    struct listen_address *first = RB_INSERT(listens, &all->listens, listen);

    if (first != NULL) {
        share_address(apply, all, first, listen);
        return;
    }
    listen->chosen = listen->last = listen;
    listen->options_of = has_options(listen) ? listen : NULL;
}

/* Enters the addresses of all servers in the tree, and reports mistakes. */
static void collect_addresses(struct apply *apply, struct scope *stream, struct collection *all)
{
    struct scope *server;
    struct listen_address *listen;

    STAILQ_FOREACH (server, &stream->servers, link) {
        if (STAILQ_EMPTY(&server->listens) && !server->listens_unknown &&
            apply_is_whole(apply, server))
            report_error(apply->report, &server->directive->name,
                "no \"listen\" is defined for this server");
        STAILQ_FOREACH (listen, &server->listens, link)
            enter_listen(apply, all, listen);
    }
}

void ports_build(struct apply *apply, struct scope *stream)
{
    struct collection all = { .listens = RB_INITIALIZER(&all.listens) };
    struct scope *server;
    struct listen_address *listen, *wide;

    assert(stream->at == CONTEXT_STREAM);
    collect_addresses(apply, stream, &all);
    if (apply->report->error_n > 0)
        return;

    STAILQ_FOREACH (server, &stream->servers, link)
        STAILQ_FOREACH (listen, &server->listens, link)
            if (listen->first == NULL && find_wide_port(&all.listens, listen) == NULL)
                add_listener(apply, listen);
    if (apply->report->error_n > 0)
        return;
    STAILQ_FOREACH (server, &stream->servers, link)
        STAILQ_FOREACH (listen, &server->listens, link)
            if (listen->first == NULL && (wide = find_wide_port(&all.listens, listen)) != NULL)
                add_binding(apply, wide->listener, listen);
}

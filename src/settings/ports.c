/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes listeners of the servers' `listen` directives. An address has one socket, except that a
 * wildcard's socket takes the clients of the other addresses of its port. */
#include "base/check.h"
#include "settings/apply.h"
#include "settings/listen.h"

#include <string.h>

/* A tree, because a range of ports makes tens of thousands of entries. */
RB_HEAD(listens, fb_listen);

static int compare(const struct fb_listen *a, const struct fb_listen *b)
{
    return fb_address_compare(&a->address, &b->address);
}

RB_GENERATE_INTERNAL(listens, fb_listen, node, compare, static __attribute__((unused)))

/* The wildcard whose socket receives what is sent to `narrow`, or NULL. */
static struct fb_listen *find_wide(struct listens *listens, const struct fb_listen *narrow)
{
    struct fb_listen wide;

    if (narrow->own_socket || fb_address_is_wildcard(&narrow->address) ||
        narrow->address.any.sa_family == AF_UNIX)
        return NULL;
    memset(&wide, 0, sizeof(wide));
    wide.address.length = narrow->address.length;
    wide.address.any.sa_family = narrow->address.any.sa_family;
    fb_address_set_port(&wide.address, fb_address_port(&narrow->address));
    return RB_FIND(listens, listens, &wide);
}

static void add_binding(
    struct fb_apply *apply, struct fb_listener *listener, const struct fb_listen *listen)
{
    struct fb_port *port = listener->owner;
    struct fb_binding *binding = fb_apply_alloc(apply, sizeof(*binding));

    assert(port != NULL && listen->server != NULL);
    if (binding == NULL)
        return;
    binding->address = listen->address;
    binding->server = listen->server;
    fb_address_format(&listen->address, true, binding->text);
    port->several = !STAILQ_EMPTY(&port->bindings);
    STAILQ_INSERT_TAIL(&port->bindings, binding, link);
}

static void add_listener(struct fb_apply *apply, struct fb_listen *listen)
{
    struct fb_cycle *cycle = apply->cycle;
    struct fb_listener *listener =
        fb_listener_create(cycle->arena, &listen->address, &listen->options);
    struct fb_port *port = fb_apply_alloc(apply, sizeof(*port));

    if (listener == NULL)
        fb_conf_error(apply->report, NULL, "out of memory");
    if (listener == NULL || port == NULL)
        return;
    listener->options.tcp_nodelay = listen->server->settings.tcp_nodelay != 0;
    STAILQ_INIT(&port->bindings);
    listener->owner = port;
    listen->listener = listener;
    STAILQ_INSERT_TAIL(&cycle->stream.listeners, listener, link);
    add_binding(apply, listener, listen);
}

/* Reports an address that is taken. Of the ports of a range only the first is reported. */
static void enter_listen(struct fb_apply *apply, struct listens *listens, struct fb_listen *listen,
    const struct fb_conf_word **reported)
{
    const struct fb_listen *first = RB_INSERT(listens, listens, listen);
    char text[FB_ADDRESS_TEXT];

    if (first == NULL || listen->word == *reported)
        return;
    *reported = listen->word;
    fb_conf_error(apply->report, listen->word,
        "duplicate \"listen\" of %s, it is already used in %s:%u",
        fb_address_format(&listen->address, true, text), first->word->file->name,
        first->word->line);
}

/* Enters the addresses of all servers in the tree, and reports mistakes. */
static void collect(struct fb_apply *apply, struct fb_frame *stream, struct listens *listens)
{
    const struct fb_conf_word *reported = NULL;
    struct fb_frame *server;
    struct fb_listen *listen;

    STAILQ_FOREACH (server, &stream->servers, link) {
        if (STAILQ_EMPTY(&server->listens) && !server->listens_unknown &&
            fb_frame_is_whole(apply, server))
            fb_conf_error(apply->report, &server->directive->name,
                "no \"listen\" is defined for this server");
        STAILQ_FOREACH (listen, &server->listens, link)
            enter_listen(apply, listens, listen, &reported);
    }
}

void fb_ports_build(struct fb_apply *apply, struct fb_frame *stream)
{
    struct listens listens = RB_INITIALIZER(&listens);
    struct fb_frame *server;
    struct fb_listen *listen, *wide;

    assert(stream->at == FB_AT_STREAM);
    collect(apply, stream, &listens);
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

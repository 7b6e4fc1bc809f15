/* SPDX-License-Identifier: BSD-2-Clause */
/* From the servers' `listen` directives to sockets: an address has one, except that a wildcard's
 * socket takes in the other addresses of its port. */
#include "settings/apply.h"

/* Whether `wide`'s socket receives what is sent to `narrow`. */
static bool takes_in(const struct fb_listen *wide, const struct fb_listen *narrow)
{
    const struct fb_address *a = &wide->address, *b = &narrow->address;

    return a->any.sa_family == b->any.sa_family && a->any.sa_family != AF_UNIX &&
           fb_address_is_wildcard(a) && !fb_address_is_wildcard(b) &&
           fb_address_port(a) == fb_address_port(b) && !narrow->own_socket;
}

/* The wildcard whose socket receives what is sent to `narrow`, or NULL. */
static const struct fb_listen *find_wide(
    const struct fb_frame *stream, const struct fb_listen *narrow)
{
    const struct fb_frame *server;
    const struct fb_listen *listen;

    STAILQ_FOREACH (server, &stream->servers, link)
        STAILQ_FOREACH (listen, &server->listens, link)
            if (takes_in(listen, narrow))
                return listen;
    return NULL;
}

/* The one before it with the same address, or NULL. */
static const struct fb_listen *find_same(
    const struct fb_frame *stream, const struct fb_listen *later)
{
    const struct fb_frame *server;
    const struct fb_listen *listen;

    STAILQ_FOREACH (server, &stream->servers, link)
        STAILQ_FOREACH (listen, &server->listens, link) {
            if (listen == later)
                return NULL;
            if (fb_address_equal(&listen->address, &later->address))
                return listen;
        }
    return NULL;
}

static struct fb_listener *listener_of(
    const struct fb_cycle *cycle, const struct fb_address *address)
{
    struct fb_listener *listener;

    STAILQ_FOREACH (listener, &cycle->stream.listeners, link)
        if (fb_address_equal(&listener->address, address))
            return listener;
    return NULL;
}

static void add_binding(
    struct fb_apply *apply, struct fb_listener *listener, const struct fb_listen *listen)
{
    struct fb_port *port = listener->owner;
    struct fb_binding *binding = fb_apply_alloc(apply, sizeof(*binding));

    if (binding == NULL)
        return;
    binding->address = listen->address;
    binding->server = listen->server;
    fb_address_format(&listen->address, true, binding->text);
    port->several = !STAILQ_EMPTY(&port->bindings);
    STAILQ_INSERT_TAIL(&port->bindings, binding, link);
}

static void add_listener(struct fb_apply *apply, const struct fb_listen *listen)
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
    STAILQ_INSERT_TAIL(&cycle->stream.listeners, listener, link);
    add_binding(apply, listener, listen);
}

/* Of the ports of a range, which are one word, the first that is taken is enough. */
static void check(struct fb_apply *apply, const struct fb_frame *stream,
    const struct fb_listen *listen, const struct fb_conf_word **reported)
{
    const struct fb_listen *first = find_same(stream, listen);
    char text[FB_ADDRESS_TEXT];

    if (first == NULL || listen->word == *reported)
        return;
    *reported = listen->word;
    fb_conf_error(apply->report, listen->word, "duplicate \"listen\" of %s, it is taken in %s:%u",
        fb_address_format(&listen->address, true, text), first->word->file->name,
        first->word->line);
}

void fb_ports_build(struct fb_apply *apply, struct fb_frame *stream)
{
    const struct fb_frame *server;
    const struct fb_listen *listen, *wide;
    const struct fb_conf_word *reported = NULL;

    STAILQ_FOREACH (server, &stream->servers, link) {
        if (STAILQ_EMPTY(&server->listens) && fb_frame_is_whole(apply, server))
            fb_conf_error(apply->report, &server->directive->name,
                "no \"listen\" is defined for this server");
        STAILQ_FOREACH (listen, &server->listens, link)
            check(apply, stream, listen, &reported);
    }
    if (apply->report->error_n > 0)
        return;

    STAILQ_FOREACH (server, &stream->servers, link)
        STAILQ_FOREACH (listen, &server->listens, link)
            if (find_wide(stream, listen) == NULL)
                add_listener(apply, listen);
    if (apply->report->error_n > 0)
        return;
    STAILQ_FOREACH (server, &stream->servers, link)
        STAILQ_FOREACH (listen, &server->listens, link)
            if ((wide = find_wide(stream, listen)) != NULL)
                add_binding(apply, listener_of(apply->cycle, &wide->address), listen);
}

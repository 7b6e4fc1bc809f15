/* SPDX-License-Identifier: BSD-2-Clause */
/* `listen` directives, and the listeners that all of them together ask for. */
#pragma once

#include "net/listener.h"
#include "settings/setting.h"

#include <bsd/sys/tree.h>

struct fb_frame;

/* An address of a `listen` directive, or one port of its range. */
struct fb_listen {
    STAILQ_ENTRY(fb_listen) link; /* in its server */
    RB_ENTRY(fb_listen) node;     /* in the tree of all of them, by address */
    struct fb_listener *listener; /* the address's; NULL: a wildcard's socket takes its clients */
    const struct fb_conf_word *word;
    struct fb_address address;
    struct fb_listen_options options;
    bool own_socket; /* `bind`, or an option that only a socket of its own can have */
    struct fb_server *server;
};

FB_SETTER(fb_set_listen);

/* Makes the cycle's listeners of the `listen` directives of all servers (ports.c). */
void fb_ports_build(struct fb_apply *apply, struct fb_frame *stream);

/* SPDX-License-Identifier: BSD-2-Clause */
/* What `stream {}` has set up: servers, and which of them a connection belongs to. */
#pragma once

#include "net/address.h"
#include "net/listener.h"
#include "shm/zone.h"

#include <bsd/sys/queue.h>
#include <forkbeard/forkbeard.h>

/* What `server {}` sets, or inherits from `stream {}`. */
struct fb_server_settings {
    int64_t tcp_nodelay;
    int64_t idle_timeout;       /* ms; 0: none */
    int64_t first_byte_timeout; /* ms; 0: none */
};

struct fb_server {
    STAILQ_ENTRY(fb_server) link;
    const fb_protocol *protocol; /* NULL: what is accepted is closed */
    unsigned protocol_index;     /* of its state slab */
    void *protocol_conf;
    struct fb_zone *metrics; /* the protocol's; NULL: it has none */
    struct fb_server_settings settings;
};

/* One `listen` of a server: an address, or one port of a range. A connection's owner. */
struct fb_binding {
    STAILQ_ENTRY(fb_binding) link;
    struct fb_address address;
    char text[FB_ADDRESS_TEXT];
    struct fb_server *server;
};

/* A listener's owner: the bindings that its socket serves. The first is the one of the socket's own
 * address; others are addresses that a wildcard's socket takes in, told apart by getsockname(). */
struct fb_port {
    STAILQ_HEAD(, fb_binding) bindings;
    bool several;
};

struct fb_stream_settings {
    STAILQ_HEAD(, fb_server) servers;
    struct fb_listeners listeners;
};

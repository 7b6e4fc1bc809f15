/* SPDX-License-Identifier: BSD-2-Clause */
/* `server_name`: the server that a TLS client asks for, among those of an address.
 *
 * Responsible for the names of each address, and for moving a client to the server of the name, by
 * `ssl` before the handshake, and by `ssl_preread`. Never reads a ClientHello itself. Invariant: an
 * unknown name, and none, leave a client to the default server. */
#pragma once

#include "features/map/map.h"
#include "settings/setting.h"

#include <bsd/sys/queue.h>
#include <forkbeard/types.h>

struct binding;
struct listen_address;
struct tls_hello;

/* A name of a server. */
struct server_name {
    STAILQ_ENTRY(server_name) link;
    const char *name;              /* in lower case; an expression with its "~" */
    const struct regex *regex;     /* NULL: no expression */
    const struct variable **named; /* variables of its named captures */
    const struct conf_word *word;
};

/* A server of an address. */
struct named_server {
    struct binding *binding;
    const struct listen_address *listen;
};

/* The names of an address. */
struct server_names {
    struct map map;                /* its texts are places in `servers` */
    const struct map_regex **last; /* end of the expressions */
    struct named_server *servers;  /* the default server first */
    unsigned n;
};

/* Moves a client to the server of the name in the message, parsed from the input, where the
 * address has names. -1 without memory: the client is to be closed. */
int server_name_choose(struct fb_conn *conn, const struct tls_hello *hello, fb_bytes in);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The `listen` directive: its addresses, and the listeners that all servers together need. Opens no
 * socket. */
#pragma once

#include "net/listener.h"
#include "settings/setting.h"

#include <bsd/sys/tree.h>

struct binding;
struct listen_stats;
struct scope;
struct server_names;
struct stream_settings;

/* An address of a `listen` directive, or one port of a range. The first listen of an address stands
 * for all servers of the address. */
struct listen_address {
    STAILQ_ENTRY(listen_address) link; /* in its server */
    RB_ENTRY(listen_address) node;     /* in the tree of all of them, by address */
    struct listener *listener; /* the address's; NULL: a wildcard's socket takes the clients */
    const struct conf_word *word;
    struct address address;
    struct listener_options options;
    bool own_socket;     /* `bind`, or an option that needs a separate socket */
    bool proxy_protocol; /* clients begin with a PROXY header */
    bool ssl;            /* clients begin with a TLS handshake */
    bool in_range;       /* one port of several */
    bool passed;         /* the service manager's (fd:NAME) */
    bool default_server;
    struct server *server;
    struct binding *binding;           /* the binding of a first listen, once made; or NULL */
    const struct scope *scope;         /* the server's */
    struct listen_address *first;      /* with the same address; NULL: this one */
    struct listen_address *last;       /* in the first: the last with the same address */
    struct listen_address *chosen;     /* in the first: the default server's */
    struct listen_address *options_of; /* in the first: the one with socket options, or NULL */
    struct server_names *names;        /* in the first: of all servers of the address, or NULL */
};

int listen_set(struct apply *apply, const struct conf_directive *directive, void *field);
/* Returns the bit of a further binding in chains; 0: there is none left (backends/chain.h). */
uint32_t ports_next_chain(struct stream_settings *stream);
/* Returns the statistics of a `listen`; `name` is one by which the server is chosen at the address,
 * or "". NULL after a report (stats.c). */
struct listen_stats *listen_stats_make(
    struct apply *apply, const struct listen_address *listen, const char *name);
/* Declares the zone of the statistics (stats.c). */
void stats_declare(struct apply *apply);
/* Makes the cycle's listeners of the `listen` directives of all servers (ports.c). */
void ports_build(struct apply *apply, struct scope *stream);

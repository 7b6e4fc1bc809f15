/* SPDX-License-Identifier: BSD-2-Clause */
/* The servers of `stream {}`, and the server of a connection. Only data: settings/ fills in the
 * servers, and nothing changes a server in use by sessions. */
#pragma once

#include "base/check.h"
#include "names/setting.h"
#include "net/address.h"
#include "net/listener.h"
#include "shm/stats.h"
#include "upstream/upstream.h"

#include <bsd/sys/queue.h>
#include <forkbeard/forkbeard.h>

/* The phases of a session around the protocol. */

/* In the order of a session. The protocol serves between the last two. */
enum stream_phase {
    PHASE_POST_ACCEPT,
    PHASE_PREACCESS,
    PHASE_ACCESS,
    PHASE_SSL,     /* the handler holds the session up until the client's handshake is done, and may
                       give the client to another server, whose later phases run */
    PHASE_TIMES,   /* limits of the session's time */
    PHASE_PREREAD, /* the handler holds the session up; no later phase may */
    PHASE_LOG,
    STREAM_PHASES
};

struct phase_handler {
    struct phase_handler
        *next; /* the next of the server, in the order of phases, and of addition */
    enum stream_phase phase;
    /* Before the protocol has the client: 0 to go on, or the status with which the session ends. In
     * PHASE_LOG the session has ended but for the protocol's `closed`, and the result is 0. */
    unsigned (*run)(struct fb_conn *conn, const void *arg);
    const void *arg;
};

/* Statuses of sessions, as $status shows them. */
#define STATUS_OK 200
#define STATUS_BAD_REQUEST 400
#define STATUS_FORBIDDEN 403
#define STATUS_TOO_SLOW 408
#define STATUS_INTERNAL 500
#define STATUS_BAD_GATEWAY 502
#define STATUS_UNAVAILABLE 503

struct log_route;
struct named_upstreams;
struct server_names;
struct tls_profile;
struct variables;

/* Limit of features: folders of features/. */
#define STREAM_FEATURES 32

struct aio_setting {
    int64_t way;                /* enum fb_aio */
    const struct fb_pool *pool; /* the reading threads; NULL: the default pool */
};

struct conn_ops;

/* The settings of a `server {}`, set there or inherited from `stream {}`. */
struct server_settings {
    int64_t tcp_nodelay;
    int64_t idle_timeout;       /* ms; 0: none */
    int64_t first_byte_timeout; /* ms; 0: none */
    int64_t receive_timeout;    /* ms; 0: none */
    int64_t input_limit;        /* bytes; 0: the protocol's */
    int64_t output_limit;       /* bytes; 0: the protocol's; INT64_MAX: none */
    struct aio_setting aio;
    int64_t directio_alignment;           /* bytes, a power of two */
    int64_t resolver_timeout;             /* ms */
    const struct names_setting *resolver; /* NULL: the system's */
    struct upstream_drop drop;
};

struct server {
    STAILQ_ENTRY(server) link;
    const fb_protocol *protocol; /* NULL: accepted connections are closed */
    unsigned protocol_index;     /* index of the slab in struct stream */
    void *protocol_conf;
    struct zone *metrics; /* the protocol's; NULL: it has none */
    const struct variables *variables;
    struct phase_handler *before;  /* run until a handler ends the session; NULL: none */
    struct phase_handler *after;   /* those of PHASE_LOG */
    const struct tls_profile *tls; /* for bindings with `ssl`; NULL: no certificate is defined */
    const struct tls_profile *challenges; /* for challenges of ACME; NULL: `tls` */
    const struct log_route *route; /* route of the server's log lines; NULL: the default route */
    bool passes;                   /* the protocol may pass clients to other servers */
    /* goes on with a client held up by the PROXY header or the phases; NULL: session_serve() */
    void (*proceed)(struct fb_conn *conn);
    bool keeps_tls;         /* sessions keep facts of handshakes, for variables (tls.h) */
    bool keeps_certificate; /* sessions keep clients' certificates, too */
    bool connects;          /* the protocol connects clients to servers of a group */
    uint64_t needs;         /* FB_NEEDS_... of the server's directives */
    struct server_settings settings;
    void **features; /* structs of the features, by place; NULL: nothing */
};

/* Returns a feature's struct of the server. */
static inline void *server_feature(const struct server *server, unsigned feature)
{
    assert(feature < STREAM_FEATURES && server->features != NULL);
    return server->features[feature];
}

#define BINDING_KIND KIND('B', 'i', 'n', 'd')
#define PORT_KIND KIND('P', 'o', 'r', 't')

/* Limit of bindings with a bit in a chain (backends/chain.h). */
#define CHAIN_BITS 32

/* The statistics of a `listen` of a server, or of all directives beyond. */
struct listen_stats {
    STAILQ_ENTRY(listen_stats) link;
    const struct conf_word *word; /* the directive's; NULL: of all beyond */
    const struct server *server;
    const char *address, *name; /* name: the first `server_name`; "": the default server */
    uint32_t entry;             /* in the zone, once that is open */
    struct stats *own;          /* this worker's numbers; NULL: not counted */
};

/* An address of a server: one `listen`, or one port of a range. The owner of connections. Of
 * servers with one address each has a binding, and the default server's is the port's. */
struct binding {
    unsigned kind;
    STAILQ_ENTRY(binding) link;
    struct address address;
    char text[ADDRESS_TEXT];
    struct server *server;
    struct listen_stats *stats; /* NULL: not counted */
    /* choose another binding of the address by the name that a TLS client asks for; NULL: none
     * is */
    const struct server_names *names;
    bool ssl;                      /* clients begin with a TLS handshake */
    const struct tls_profile *tls; /* of a server without a profile; NULL: the server's own */
    uint32_t chain;                /* a bit in chains; 0: there are more bindings than bits */
    /* for clients: session_conn_ops, or operations of a room above */
    const struct conn_ops *ops;
};

/* A listener's owner: the bindings of a socket. The first has the socket's own address; the rest
 * are included in a wildcard's. */
struct port {
    unsigned kind;
    STAILQ_HEAD(, binding) bindings;
    bool several;
};

/* Returns the slots of a client of the bindings: two with a connection to a server. */
static inline uint32_t port_slots(const struct port *port)
{
    const struct binding *binding;

    STAILQ_FOREACH (binding, &port->bindings, link)
        if (binding->server->connects)
            return 2;
    return 1;
}

struct stream_settings {
    STAILQ_HEAD(, server) servers;
    struct listeners listeners;
    struct upstream_list upstreams;
    struct zone *addresses; /* addresses of servers with names; NULL: no server has a name */
    struct variables *variables;
    void **features;             /* structs of the features, by place; NULL: no stream {} */
    bool access_logs;            /* some access logs exist, which workers open */
    struct names_setting system; /* the resolver of the system, the first of all */
    const struct names_setting *resolver;     /* stream {}'s, for workers; NULL: none is used */
    int64_t resolver_timeout;                 /* ms; stream {}'s */
    uint64_t needs;                           /* FB_NEEDS_... of directives outside of servers */
    STAILQ_HEAD(, listen_stats) listen_stats; /* the first is for all beyond */
    uint32_t listen_stats_n;
    struct zone *stats; /* NULL: nothing is counted */
    struct stats_shape stats_shape;
    struct zone *tries; /* statistics of tries; NULL: nothing is counted */
    struct stats_shape tries_shape;
    uint32_t binding_n;
    uint64_t listen_ports; /* bits of the ports of listeners, by the low six bits of a port */
};

/* Whether clients of some server need another slot, for the connection to a server of a group. */
static inline bool stream_connects(const struct stream_settings *stream)
{
    const struct server *server;

    STAILQ_FOREACH (server, &stream->servers, link)
        if (server->connects)
            return true;
    return false;
}

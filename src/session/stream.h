/* SPDX-License-Identifier: BSD-2-Clause */
/* The sessions of a worker: connections with a server's protocol.
 *
 * Responsible for the protocols' states of connections, for the lists of idle and of named
 * connections, and for the drain. Never accepts. Invariant: a connection's state lies in the
 * protocol's slab at the slot's index. */
#pragma once

#include "net/conn.h"
#include "session/server.h"
#include "shm/shared.h"
#include "upstream/upstreams.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

/* Limit of protocols in a daemon. */
#define STREAM_PROTOCOLS_MAX 64

struct log_line;
struct session_conn;
struct session_outgoing;
struct session_read;
struct session_reuse;
struct session_tries;
struct session_use;
struct stream;
struct stream_own;
struct trunk;

/* The time for variables, formatted once a second. */
struct time_text {
    int64_t second;   /* time of the texts, since the epoch */
    char local[40];   /* 21/Nov/2026:09:30:00 +0100 */
    char iso8601[40]; /* 2026-11-21T09:30:00+01:00 */
};

/* Limit of remembered server addresses on foreign hosts. */
#define CHAIN_OTHERS 16

/* The chains of connections in a worker (backends/chain.c). */
struct chain_use {
    struct chains *table;  /* NULL: no server connects clients with others */
    uint64_t listen_ports; /* the same as in struct stream_settings */
    uint32_t binding_n;
    uint16_t tag; /* the generation */
    struct chain_other {
        uint64_t host; /* hash of the address */
        uint64_t until_ms;
    } others[CHAIN_OTHERS];
};

/* Operations of connections to servers, handed in by backends/ above. */
struct session_backends {
    size_t tries_size, try_size; /* bytes of struct session_tries and struct session_try */
    /* Begins the session of a client for a server that connects; false: the client is closed. */
    bool (*begin)(struct fb_conn *client);
    /* Goes on with a held up session, whose server connects and may have been chosen meanwhile;
     * false: as above. */
    bool (*chosen)(struct fb_conn *client);
    /* Callbacks of a connection to a server: struct conn_ops has the contracts. */
    bool (*keepalive)(struct fb_conn *conn);
    void (*connect_again)(struct fb_conn *conn);
    void (*connect_failed)(struct fb_conn *conn, int error, enum io_step step);
    /* Ends a connection without the server's answer in time. */
    void (*connect_expired)(struct fb_conn *conn);
    /* Adds the activity of the connection's session to a log line. */
    void (*describe)(const struct fb_conn *conn, struct log_line *line);
    /* Notes the first byte of a connection in a pipe. */
    void (*first_byte)(struct fb_conn *conn);
    /* Returns how the last try has ended the session: enum session_end. */
    unsigned (*last_end)(const struct session_tries *tries);
    /* Frees the tries of a client, and ends a running try. */
    void (*clear_tries)(struct session_conn *client);
    /* Takes an ending connection out of the trunk. */
    void (*leave_trunk)(struct stream *stream, struct session_reuse *reuse);
    /* Closes the connections of the keepalive pool. */
    void (*close_all)(struct stream *stream);
    /* Ends the connection of the pool unused for the longest time; false: the pool is empty. */
    bool (*evict)(struct stream *stream);
    /* Assert the invariants between callbacks: of a connection, and of all. */
    void (*check_conn)(const struct fb_conn *conn);
    void (*check)(const struct stream *stream);
};

struct stream {
    struct net net; /* the first member */
    const struct session_backends *backends;
    struct shared *shared;
    struct slot_id slot;               /* this worker's */
    const struct address_block *debug; /* debug_connection */
    unsigned debug_n;
    /* for each protocol */
    struct stream_slab {
        char *base;             /* states of connections, by slot; mapped when first needed */
        size_t stride;          /* bytes from a state to the next */
        size_t size;            /* bytes of the mapping */
        struct stream_own *own; /* owner of the worker's own connections; or NULL */
    } slabs[STREAM_PROTOCOLS_MAX];
    TAILQ_HEAD(keepalive_list, session_outgoing)
    keepalive; /* the pool: the latest use in front */
    TAILQ_HEAD(own_list, session_outgoing)
    own; /* the worker's own connections to servers, without a session */
    RB_HEAD(trunks, trunk)
    trunks;
    RB_HEAD(session_names, session_use)
    named;                     /* connections with references */
    uint64_t last_name;        /* names given so far */
    uint64_t name_key[2];      /* key of the names' permutation; set before the first */
    struct spares clients;     /* for struct session_client */
    struct spares outgoing;    /* for struct session_outgoing */
    struct spares uses;        /* for struct session_use */
    struct spares records;     /* for struct session_record */
    struct spares tries;       /* for struct session_tries */
    struct spares ended_tries; /* for struct session_try */
    fb_try shown_try;          /* the last that a protocol was shown */
    struct time_text time;
    struct upstreams upstreams;
    struct tls_link *tls_link;       /* to the engine of handshakes; NULL: no server has TLS */
    void *features[STREAM_FEATURES]; /* states of the features in this worker, or NULL */
    struct conn_link idle; /* slots of the longest and latest connection marked idle; 0: none */
    uint32_t idle_n;
    uint64_t reclaim_said_ms; /* time of the last line about closed idle connections; 0: never */
    uint64_t host_said_ms;    /* when a connect's failure for lack of a host resource was last
                               * logged; 0: never */
    bool reclaims_idle;
    const struct fb_conn *opening; /* a client whose `opened` runs: may be passed */
    uint64_t became_n;             /* clients with callbacks of fb_become() */
    TAILQ_HEAD(session_reads, session_read)
    reads; /* ended reads of files, to run `done` */
    unsigned reads_n;
    struct source *reads_next; /* runs the reads; without a descriptor. NULL: no read yet */
    struct chain_use chains;
    bool draining;         /* the worker takes no more clients */
    bool untold;           /* sessions wait for `draining` until the drain timer runs */
    uint64_t deadline_at;  /* when all sessions are closed, monotonic ms; 0: never */
    uint64_t spread;       /* ms over which idle sessions are closed */
    uint64_t spread_until; /* by when */
    struct timer drain;
    struct timer drop; /* backends/drop.c */
    /* Called when a protocol uses an ended connection; NULL: the use is logged. */
    void (*misused)(struct stream *stream, const char *call);
};

/* Returns -1 after an emerg line, with nothing left to undo. */
int stream_init(struct stream *stream, const struct net_options *options, struct shared *shared,
    const struct session_backends *backends, const struct address_block *debug, unsigned debug_n);
/* Requires that no connection is open any more. */
void stream_done(struct stream *stream);

/* Returns the owner of the worker's own connections for a protocol, or NULL without memory. */
struct binding *stream_own_binding(struct stream *stream, const struct server *server);

/* Maps the states of a protocol; false without memory. */
bool stream_map_slab(struct stream *stream, struct stream_slab *slab, size_t state);
/* The place of the protocol's state for the connection, given or not. */
void *stream_state_at(const struct fb_conn *conn, const struct server *server);
/* Asserts the invariants of all connections and sessions, between callbacks. */
void session_check_all(const struct stream *stream);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of a session beyond the connection's slot: a server's operations, the child connections,
 * a private time limit. Every connection to a server has a session_conn; a client's is made when
 * first needed, and a plain client never has any. Rarely needed parts lie beyond: use.h, record.h.
 *
 * Responsible for giving all parts back when the connection changes hands or ends. Invariant: a
 * session_conn belongs to one connection, whose `session` points back. */
#pragma once

#include "base/check.h"
#include "base/trace.h"
#include "net/conn_deadline.h"
#include "net/conn_log.h"
#include "os/memory.h"
#include "session/log.h"
#include "session/stream.h"

#include <bsd/sys/queue.h>

#define SESSION_CONN_KIND KIND('S', 'E', 'S', 'S')

struct session_outgoing;
struct session_record;
struct session_tries;
struct session_use;
struct trunk;

/* The longest time, in ms: to add it to any time of a clock is no overflow. */
#define SESSION_TIME_MOST (((uint64_t)1 << 55) - 1)

static inline uint64_t session_clamp_ms(uint64_t ms)
{
    return ms < SESSION_TIME_MOST ? ms : SESSION_TIME_MOST;
}

/* Returns a part of the time by the connection's number; consecutive numbers are spread. */
static inline uint64_t session_spread(const struct fb_conn *conn, uint64_t ms)
{
    uint64_t fraction = conn->number * UINT64_C(0x9e3779b97f4a7c15) >> 32;

    assert(fraction <= UINT32_MAX);
    return ms / UINT32_MAX * fraction + ms % UINT32_MAX * fraction / UINT32_MAX;
}

/* The phase of a session on a connection: conn->session_phase. */
enum session_phase {
    SESSION_NONE,      /* no session */
    SESSION_KEEPALIVE, /* a connection to a server, in the keepalive pool, without an owner */
    SESSION_ENDED,     /* the protocol's `closed` has run */

    SESSION_USABLE = 8,           /* a bit of the phases below: a protocol may use the connection */
    SESSION_NEW = SESSION_USABLE, /* `opened` has not run; the first phase of a session */
    SESSION_HEADER,   /* the client's PROXY header is not whole, and proxy_protocol_timeout runs */
    SESSION_TLS,      /* the client's TLS handshake is made, and ssl_handshake_timeout runs */
    SESSION_PREREAD,  /* the client's first bytes are looked at, and preread_timeout runs */
    SESSION_AWAITED,  /* the client's first byte has not come, and first_byte_timeout runs */
    SESSION_ACTIVE,   /* idle_timeout runs, or none */
    SESSION_SECURING, /* TLS begins within the session, and a time of its own runs (secure.h) */
    SESSION_PHASES,
};

struct session_conn {
    unsigned kind;
    uint16_t error;       /* errno of a failed system call on the connection */
    uint16_t status : 10; /* a client's; 0: none was set */
    uint16_t end : 6;     /* a client's: enum session_end */
    struct fb_conn *conn;
    const fb_ops *ops;       /* NULL: the protocol's; a client's are fb_become()'s */
    struct chunk *lasting;   /* arena of fb_alloc() */
    struct session_use *use; /* NULL: the user has set up nothing else */
    union {
        struct session_record *known; /* at a session's root: the record, or NULL */
        struct session_conn *maker;   /* session that owns a child */
    };
    LIST_HEAD(, session_outgoing) children; /* connections made for this connection */
    uint64_t timeout : 55;                  /* ms; SESSION_TIME_MOST at most */
    bool own_timeout : 1;                   /* fb_set_timeout() has set `timeout` */
    bool has_become : 1;                    /* fb_become() has run since `data` was last called */
    bool untold : 1; /* fb_become() has run in a draining worker, and `draining` has not */
    bool told : 1;   /* `draining` of the present callbacks has run in a worker not draining */

    /* a connection to a server */
    bool is_outgoing : 1; /* first member of a struct session_outgoing; else session_client */
    bool is_child : 1;    /* made for a session; else the worker's, or kept */
    bool is_own : 1;      /* the worker's: in the worker's list, without a parent */
    bool waits : 1;       /* in the trunk's queue, without a socket */
    bool reused : 1;      /* taken from the keepalive pool */
};

/* A client's. */
struct session_client {
    struct session_conn session; /* the first member */
    struct session_tries *tries; /* tries of servers; NULL: none was chosen */
};

/* A connection to a server has this. */
struct session_outgoing {
    struct session_conn session; /* the first member */
    const struct fb_target *target;
    union {
        LIST_ENTRY(session_outgoing) sibling; /* a child's */
        TAILQ_ENTRY(session_outgoing) among;  /* in the pool, or the worker's */
    };
    struct session_reuse *reuse; /* NULL: nothing goes to its next user */
    uint32_t keep_ms;            /* fb_keep()'s */
    uint8_t log_level;           /* level of a failed connect()'s line */
};

/* Goes with a connection to a server from one user to the next; made when first needed. The release
 * of an attached pointer runs from the loop, once, after the last user's `closed`. */
struct session_reuse {
    struct session_conn *session;
    struct trunk *trunk;              /* interchangeable connections (trunk.c), or NULL */
    TAILQ_ENTRY(session_reuse) alike; /* waiting or idle connections of the trunk */
    struct chunk *attached;           /* fb_attach()'s, or NULL */
    const fb_ops *first_ops;          /* NULL: unchanged since the connect */
};

static inline struct stream *stream_of(const struct fb_conn *conn)
{
    return container_of(conn->net, struct stream, net);
}

/* Returns the tries of a client, or NULL. */
static inline struct session_tries *session_tries_of(const struct fb_conn *client)
{
    const struct session_conn *session = client->session;

    assert(session == NULL || !session->is_outgoing);
    return session != NULL ? container_of(session, struct session_client, session)->tries : NULL;
}

/* Returns the session_outgoing of a connection to a server. */
static inline struct session_outgoing *session_outgoing_of(const struct session_conn *session)
{
    assert(session->is_outgoing);
    return container_of(session, struct session_outgoing, session);
}

/* Returns the session_reuse of a connection to a server, or NULL. */
static inline struct session_reuse *session_reuse_of(const struct session_conn *session)
{
    return session_outgoing_of(session)->reuse;
}

/* Returns the trunk of a connection to a server, or NULL. */
static inline struct trunk *session_trunk_of(const struct session_conn *session)
{
    const struct session_reuse *reuse = session_reuse_of(session);

    return reuse != NULL ? reuse->trunk : NULL;
}

/* Returns the target of a connection to a server. */
static inline const struct fb_target *session_target_of(const struct session_conn *session)
{
    return session_outgoing_of(session)->target;
}

/* Returns the parent session of a connection; NULL: none. */
static inline struct session_conn *session_parent_of(const struct session_conn *session)
{
    return session->is_child ? session->maker : NULL;
}

/* Makes a connection without a record the child of a session. */
static inline void session_conn_adopt(struct session_conn *session, struct session_conn *parent)
{
    assert(session->is_child || session->known == NULL);
    session->is_child = true;
    session->maker = parent;
}

/* Returns the record of the session with the connection as root, or NULL. */
static inline struct session_record *session_own_record(const struct session_conn *session)
{
    return session->is_child ? NULL : session->known;
}

/* Returns the level of a line about a connection that a peer fails: a client's, or a server's. */
static inline enum log_level session_level_of(const struct fb_conn *conn)
{
    uint8_t level;

    if (!conn->outgoing)
        return LEVEL_INFO;
    level = session_outgoing_of(conn->session)->log_level;
    return level != 0 ? (enum log_level)level : LEVEL_ERROR;
}

static inline struct binding *session_binding_of(const struct fb_conn *conn)
{
    return conn->owner;
}

static inline const struct server *session_server_of(const struct fb_conn *conn)
{
    const struct binding *binding = conn->owner;

    return binding->server;
}

/* Whether a slot is reserved for the client's connection to a server, not made yet. */
static inline bool session_keeps_slot(const struct fb_conn *conn)
{
    const struct session_conn *session = conn->session;
    const struct binding *binding = conn->owner;

    return !conn->outgoing && binding->server->connects &&
           (session == NULL || LIST_EMPTY(&session->children));
}

/* Returns the client, or the worker's own connection, at the root of a tree of connections. */
static inline struct fb_conn *session_client_of(const struct fb_conn *conn)
{
    while (conn->outgoing && conn->session != NULL && conn->session->is_child)
        conn = conn->session->maker->conn;
    return conn_at_slot(conn->net, conn_slot(conn));
}

/* The status of a session, for $status; 0: none set, and the session has not ended. */
static inline unsigned session_status(const struct fb_conn *conn)
{
    const struct session_conn *session = conn->session;

    return session != NULL ? session->status : 0;
}

/* Creates the session_outgoing of a connection before the connect; NULL without memory. */
struct session_outgoing *session_outgoing_create(struct stream *stream);
/* Creates the session_conn of a client; NULL without memory: the client has been failed. */
struct session_conn *session_conn_add(struct fb_conn *conn);
/* Returns the connection's session_conn, created where there is none; NULL as above. */
static inline struct session_conn *session_conn_make(struct fb_conn *conn)
{
    struct session_conn *session = conn->session;

    return likely(session != NULL) ? session : session_conn_add(conn);
}

static inline void session_set_status(struct fb_conn *conn, unsigned status)
{
    struct session_conn *session;

    if (session_status(conn) == status)
        return;
    session = session_conn_make(conn);
    if (session != NULL)
        session->status = status & 0x3ff;
}
/* Whether the operations have a callback: a module built with an older header has fewer. */
#define SESSION_HAS(ops, member) ((ops)->size > offsetof(fb_ops, member) && (ops)->member != NULL)

static inline const fb_ops *session_ops_of(const struct fb_conn *conn)
{
    const struct session_conn *session = conn->session;
    const struct binding *binding = conn->owner;

    return session != NULL && session->ops != NULL ? session->ops : binding->server->protocol->ops;
}

/* Begin and end a callback in the heartbeat: the master names the callback of a hanging worker. */
static inline void session_callback_begin(const struct fb_conn *conn, enum callback callback)
{
    const struct binding *binding = conn->owner;
    const struct server *server = binding->server;

    trace_callback_begin(server->protocol->name, heartbeat_callback_names[callback], conn->number);
    heartbeat_begin(conn->net->heartbeat, callback, server->protocol_index);
}

/* A child of fork() that returns from the callback finds the connections' slots empty. */
static inline void session_callback_end(const struct fb_conn *conn)
{
    const struct net *net = conn->net;

    if (unlikely(net == NULL))
        os_wiped_end();
    trace_callback_end();
    if (unlikely(heartbeat_end(net->heartbeat)))
        session_log_stall(conn);
}

#define TO(phase) (1U << SESSION_##phase)

/* The legal next phases of every phase, as bits. */
static const uint16_t session_steps[SESSION_PHASES] = {
    [SESSION_NONE] = TO(NEW),
    [SESSION_NEW] = TO(HEADER) | TO(TLS) | TO(PREREAD) | TO(AWAITED) | TO(ACTIVE) |
                    TO(SECURING) /* connections to servers alone */ | TO(ENDED),
    [SESSION_HEADER] = TO(TLS) | TO(PREREAD) | TO(AWAITED) | TO(ACTIVE) | TO(ENDED),
    [SESSION_TLS] = TO(PREREAD) | TO(AWAITED) | TO(ACTIVE) | TO(ENDED),
    [SESSION_PREREAD] = TO(AWAITED) | TO(ACTIVE) | TO(ENDED),
    [SESSION_AWAITED] = TO(ACTIVE) | TO(SECURING) | TO(NEW) /* of another server */ | TO(ENDED),
    [SESSION_ACTIVE] = TO(KEEPALIVE) | TO(SECURING) | TO(NEW) /* the same */ | TO(ENDED),
    [SESSION_SECURING] = TO(ACTIVE) | TO(NEW) /* `opened` has not run */,
    [SESSION_KEEPALIVE] = TO(NEW) /* for another owner */ | TO(ENDED),
};
#undef TO
static_assert(SESSION_PHASES <= 16, "a phase has four bits");

/* Changes the phase and asserts that the step is legal. */
static inline void session_set_phase(struct fb_conn *conn, enum session_phase phase)
{
    assert((session_steps[conn->session_phase] >> phase & 1) != 0);
    assert(conn->outgoing || phase != SESSION_KEEPALIVE);
    assert(conn->outgoing || phase != SESSION_SECURING || conn->session_phase != SESSION_NEW);
    assert(!conn->outgoing ||
           (phase != SESSION_AWAITED && phase != SESSION_HEADER && phase != SESSION_TLS));
    conn->session_phase = phase;
}

/* Whether a protocol may use the connection: between the session's begin, and end or pool. */
static inline bool session_is_usable(const struct fb_conn *conn)
{
    return (conn->session_phase & SESSION_USABLE) != 0;
}

/* Whether the connection is in the keepalive pool. */
static inline bool session_is_keepalive(const struct fb_conn *conn)
{
    return conn->session_phase == SESSION_KEEPALIVE;
}

/* Call the protocol, where it has the callback: `closed` of the given operations; fb_pipe()'s
 * function of the first byte; `tls_started`; `draining` with the time left, or with a
 * deadline in ms (0: none). */
void session_call_closed(struct fb_conn *conn, const fb_ops *ops, fb_reason reason);
void session_call_first_byte(struct fb_conn *conn, conn_first_byte call);
void session_call_tls_started(struct fb_conn *conn);
void session_call_draining(struct fb_conn *conn);
void session_call_draining_in(struct fb_conn *conn, uint64_t deadline);

/* Returns the session's reuse, created where there is none; NULL without memory. */
struct session_reuse *session_reuse_make(struct stream *stream, struct session_conn *session);
/* Frees the session's reuse. */
void session_reuse_free(struct stream *stream, struct session_conn *session);
/* fb_attach() and fb_attached() */
int session_attach(struct fb_conn *conn, void *p, void (*release)(void *p));
void *session_attached(const struct fb_conn *conn);

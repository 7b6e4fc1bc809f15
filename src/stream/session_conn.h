/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of a session that needs memory beyond the connection's slot: a server's operations, time
 * limits, timers, memory, a frame that has begun, a name for references. Made when first needed; a
 * plain client never has one.
 *
 * Responsible for giving all of that back when the connection changes hands or ends. Invariant: a
 * session_conn belongs to one connection, whose `session` points back at it. */
#pragma once

#include "base/check.h"
#include "base/wiped.h"
#include "event/id_timers.h"
#include "names/names.h"
#include "net/conn.h"
#include "stream/session_log.h"
#include "stream/stream.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#define SESSION_CONN_KIND KIND('S', 'E', 'S', 'S')

struct captures;
struct session_passage;
struct session_proxy;
struct session_lifetime;
struct session_receive;
struct session_tries;

/* The longest time, in ms: to add it to any time of a clock is no overflow. */
#define SESSION_TIME_MOST ((uint64_t)INT64_MAX)

/* The phase of a session on one connection: conn->session_phase. session_state.c has the legal
 * steps. */
enum session_phase {
    SESSION_NEW,       /* `opened` has not run */
    SESSION_HEADER,    /* the client's PROXY header is not whole, and proxy_protocol_timeout runs */
    SESSION_AWAITED,   /* the client's first byte has not come, and first_byte_timeout runs */
    SESSION_ACTIVE,    /* idle_timeout runs, or none */
    SESSION_KEEPALIVE, /* a connection to a server, in the keepalive pool, without an owner */
    SESSION_ENDED,     /* the protocol's `closed` has run */
    SESSION_PHASES,
};

struct session_conn {
    struct fb_conn *conn;

    /* a connection to a server */
    const fb_ops *ops; /* NULL: those of the connection's protocol; a client's are fb_become()'s */
    const struct fb_target *target;
    struct session_conn *parent;         /* session that it was made for; NULL: none */
    TAILQ_ENTRY(session_conn) sibling;   /* in the parent's children, the pool, or the worker's */
    TAILQ_HEAD(, session_conn) children; /* connections that were made for this one */
    struct trunk *trunk;             /* a group of connections that are alike (trunk.c), or NULL */
    TAILQ_ENTRY(session_conn) alike; /* among those of the trunk that wait, or are idle */
    struct chunk *attached;          /* fb_attach()'s, or NULL */
    int error;                       /* errno of a system call on the connection that has failed */
    uint8_t log_level;               /* level of its connect()'s failure */
    bool is_own;                     /* the worker's: in its list, without a parent */
    bool waits;                      /* in the trunk's queue: it has no socket */
    bool is_rare;                    /* owned by the worker, or has a trunk or something attached */
    bool reused;                     /* taken from the keepalive pool */
    const fb_ops *first_ops;         /* the operations of its connect, where it has others now */

    /* a client: the connections that were made for it, and what they have moved until their end */
    uint64_t server_n, from_servers, to_servers;

    bool own_timeout; /* fb_set_timeout() has set `timeout` */
    bool has_become;  /* fb_become() has run since `data` was last called */
    bool untold;      /* fb_become() has run in a draining worker, and `draining` has not */
    unsigned kind;
    uint64_t timeout, keep_ms;
    struct id_timers timers;           /* of the protocol */
    struct chunk *lasting, *temporary; /* arenas of fb_alloc() and fb_temp_alloc() */

    /* a frame that is not whole (frame.c) */
    const uint8_t *frame_at;  /* start of it in the input that is lent; NULL: at its beginning */
    size_t frame_most;        /* input that it may be, until it is whole; 0: there is none */
    size_t frame_scanned;     /* bytes of it known not to hold the delimiter */
    uint64_t frame_delimiter; /* a hash of it */
    uint64_t frame_timeout;
    struct timer frame_timer;

    struct session_receive *receive;   /* time to receive in (session_receive.c); NULL: any */
    struct session_lifetime *lifetime; /* session_lifetime.c; NULL: any */

    TAILQ_HEAD(session_own_reads, session_read) reads; /* of files (session_read.c) */
    struct names_owned resolutions;                    /* of names */

    /* a client: what is known of its session */
    struct chunk *kept;                /* memory of session_keep() */
    struct value *values;              /* of variables, by their indexes; NULL: none is known */
    const struct session_proxy *proxy; /* the PROXY header it began with; NULL: none is kept */
    const struct captures *captures;   /* of the last regular expression that matched, or NULL */
    struct session_passage *passage;   /* from server to server, or NULL */
    uint16_t status;                   /* 0: none was set */
    uint8_t limit_status;              /* enum limit_status */
    uint8_t variable_depth;            /* variables that are being worked out for each other */
    struct session_tries *tries;       /* of servers (session_tries.c), or NULL */
    struct limit_held *limits;         /* limits that the session was counted for */
    uint64_t more_received, more_sent; /* bytes that the protocol has added for the log */

    /* messages */
    RB_ENTRY(session_conn) named;
    uint64_t name; /* 0: no reference has been asked for */
    unsigned unanswered;
    unsigned guesses; /* references that were never given out */
};

/* Returns NULL where the connection has none. */
static inline struct session_conn *session_conn_of(const struct fb_conn *conn)
{
    struct session_conn *session = conn->session;

    assert(session == NULL || session->kind == SESSION_CONN_KIND);
    return session;
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

/* Returns the client at the root of the connections that were made for each other, or the root
 * itself where the worker has it. */
static inline struct fb_conn *session_client_of(const struct fb_conn *conn)
{
    while (conn->outgoing && conn->session != NULL && session_conn_of(conn)->parent != NULL)
        conn = session_conn_of(conn)->parent->conn;
    return conn_at_slot(conn->net, conn_slot(conn));
}

/* Returns n bytes that last as long as the client's session, aligned for any type; NULL without
 * memory. */
void *session_keep(struct fb_conn *conn, size_t n);

/* The status of a session, as $status shows it; 0: none was set, and it has not ended. */
static inline unsigned session_status(const struct fb_conn *conn)
{
    const struct session_conn *session = session_conn_of(conn);

    return session != NULL ? session->status : 0;
}

/* Creates one without a connection; NULL without memory. */
struct session_conn *session_conn_create(struct stream *stream);
/* Frees one that no connection has. */
void session_conn_discard(struct stream *stream, struct session_conn *session);
/* Returns the connection's, created where there is none; NULL without memory, and then the
 * connection has been failed. */
struct session_conn *session_conn_make(struct fb_conn *conn);
static inline void session_set_status(struct fb_conn *conn, unsigned status)
{
    struct session_conn *session;

    if (session_status(conn) == status)
        return;
    session = session_conn_make(conn);
    if (session != NULL)
        session->status = (uint16_t)status;
}
/* session_conn_end.c: Gives back what belongs to the present user of the connection. Its children
 * have ended. */
void session_conn_clear(struct session_conn *session);
/* The same, but for what is known of a client's session, and its memory. */
void session_conn_clear_use(struct session_conn *session);
/* Frees the connection's, which has one, at the connection's end. */
void session_conn_free(struct fb_conn *conn);
/* fb_attach() and fb_attached() */
int session_attach(struct fb_conn *conn, void *p, void (*release)(void *p));
void *session_attached(const struct fb_conn *conn);
/* Ends the connections that were made for this one. */
void session_conn_end_children(struct session_conn *session);

/* Whether the operations have a callback: what was built with an older header has fewer. */
#define SESSION_HAS(ops, member) ((ops)->size > offsetof(fb_ops, member) && (ops)->member != NULL)

static inline const fb_ops *session_ops_of(const struct fb_conn *conn)
{
    const struct session_conn *session = session_conn_of(conn);

    return session != NULL && session->ops != NULL ? session->ops
                                                   : session_server_of(conn)->protocol->ops;
}

/* Before and after a callback, so that the master can say in which one a worker got stuck. */
static inline void session_callback_begin(const struct fb_conn *conn, enum callback callback)
{
    heartbeat_begin(conn->net->heartbeat, callback, session_server_of(conn)->protocol_index);
}

/* A child of fork() that comes back from the callback finds its connections' slots empty. */
static inline void session_callback_end(const struct fb_conn *conn)
{
    const struct net *net = conn->net;

    if (unlikely(net == NULL))
        wiped_end();
    if (unlikely(heartbeat_end(net->heartbeat)))
        session_log_stall(conn);
}

/* session_state.c: For each value of the field those phases that may follow, as bits. */
extern const uint8_t session_steps[8];

/* Changes the phase and asserts that the step is legal. */
static inline void session_set_phase(struct fb_conn *conn, enum session_phase phase)
{
    assert((session_steps[conn->session_phase] & 1U << phase) != 0);
    assert(conn->outgoing || phase != SESSION_KEEPALIVE);
    assert(!conn->outgoing || (phase != SESSION_AWAITED && phase != SESSION_HEADER));
    conn->session_phase = phase;
}

/* Whether the connection is in the keepalive pool, where no protocol may use it. */
static inline bool session_is_keepalive(const struct fb_conn *conn)
{
    return conn->session_phase == SESSION_KEEPALIVE;
}

/* session_timers.c: fb_timer() and fb_timer_cancel() */
void session_timer_set(struct fb_conn *conn, uint32_t id, uint64_t ms);
void session_timer_cancel(struct fb_conn *conn, uint32_t id);
void session_timers_clear(struct session_conn *session);

/* session_receive.c: Ends the connection when no input has come for `ms`; 0: never. */
void session_receive_set(struct fb_conn *conn, uint64_t ms);
void session_receive_clear(struct session_conn *session);
/* Handles a phase of a session, by a struct rate_setting: from now on messages of the client have
 * to come at that rate. Returns 0; without memory the connection has failed. */
unsigned session_receive_begin_rate(struct fb_conn *conn, const void *setting);

/* session_names.c: A number that stands for the connection in references, of SESSION_NAME_BITS bits
 * and at least SESSION_NAME_LEAST; 0 without memory. */
#define SESSION_NAME_BITS 40
#define SESSION_NAME_LEAST (UINT64_C(1) << 19)
uint64_t session_name(struct fb_conn *conn);
/* Whether some connection has had the name. */
bool session_name_was_given(const struct stream *stream, uint64_t name);
/* Returns the connection of that name, or NULL. */
struct fb_conn *session_find(struct stream *stream, uint64_t name);
void session_name_drop(struct session_conn *session);

/* session_read.c: Forgets the session's reads of files: their `done` never runs. */
void session_reads_clear(struct session_conn *session);
/* Queues those that have waited for the connection's output. */
void session_reads_release(struct session_conn *session);

/* session.c: Gives a client whose PROXY header has come to its server's protocol. */
void session_begin(struct fb_conn *conn);
/* session.c: Waits no more for a client's first byte: bytes have to move from now on. */
void session_await_no_more(struct fb_conn *conn);
/* session.c: fb_set_timeout() and fb_close() */
void session_set_timeout(struct fb_conn *conn, uint64_t ms);
void session_close(struct fb_conn *conn);

/* session_become.c: fb_become(); -1 without memory, and then the connection has been failed. */
int session_become(struct fb_conn *conn, const fb_ops *ops, void *state);
/* drain.c: Has `draining` called of a session that has got other callbacks in a draining worker. */
void stream_drain_late(struct fb_conn *conn);

/* Time in which a server has to answer a connect(). */
#define UPSTREAM_TIMEOUT_MS 60000
/* upstream.c: fb_connect() */
struct fb_conn *upstream_connect(
    struct fb_conn *owner, const struct fb_target *target, const fb_ops *ops, void *state);
/* Asks for idle connections to be closed by the flush that follows the running callback, and lets
 * as many be made now; `owner`, or NULL, keeps what it uses. */
void upstream_make_room(struct stream *stream, const struct fb_conn *owner);
/* upstream_options.c: fb_connect_with(). The target may be the caller's for the call alone. */
struct fb_conn *upstream_connect_with(struct stream *stream, struct binding *own,
    const struct fb_target *target, const fb_ops *ops, void *state,
    const fb_connect_options *options);
/* Begins a connect() for which there was no descriptor, or no place. */
void upstream_connect_again(struct fb_conn *conn);
/* Logs, with the level that was asked for. */
void upstream_connect_failed(struct fb_conn *conn, int error, bool bind_failed);

/* keepalive.c: fb_keep() */
void keepalive_keep(struct fb_conn *conn, uint64_t ms);

/* frame.c: `data` has consumed input up to `at`. */
void frame_consumed(struct session_conn *session, const uint8_t *at);
/* Forgets a frame that has begun: it will not become whole. */
void frame_forget(struct session_conn *session);

/* session_check.c: Asserts what holds for a session's connection between callbacks. */
void session_check(const struct fb_conn *conn);

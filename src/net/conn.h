/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection: a slot of the loop's table with events and deadline. Memory for bytes is held only
 * until the owner has consumed or the peer has taken them.
 *
 * Callbacks of the owner (struct conn_ops) run from the loop, never from an owner's call: the flush
 * after each callback does a call's work. Invariant: the phase decides on the allowed calls, and
 * only conn_set_phase() changes it. */
#pragma once

#include "net/address.h"
#include "net/net.h"

#include <forkbeard/types.h>
#include <netinet/in.h>

struct conn_pipe_end;
struct session_conn;

/* Owners' functions, called by a pipe at the first byte from the second end. */
typedef void (*conn_first_byte)(struct fb_conn *b, void *state);

struct conn_ops {
    void (*opened)(struct fb_conn *conn);
    /* Returns how many of the bytes were consumed. */
    size_t (*data)(struct fb_conn *conn, fb_bytes in);
    /* The peer has ended its half; `rest` is the unconsumed input. */
    void (*eof)(struct fb_conn *conn, fb_bytes rest);
    /* Unsent output fell below the low-water mark after it had been above the high-water mark. */
    void (*writable)(struct fb_conn *conn);
    /* Returns the bytes of unsent memory at which `unwritable` runs, and twice of which fail the
     * connection. NULL, as `unwritable` then: any number. */
    size_t (*output_limit)(const struct fb_conn *conn);
    /* The limit is reached; `writable` follows. */
    void (*unwritable)(struct fb_conn *conn);
    /* The owner's deadline of the connection is reached. */
    void (*expired)(struct fb_conn *conn);
    /* Runs once for every `opened` and connect; then the owner may not use the connection. */
    void (*closed)(struct fb_conn *conn, fb_reason reason);
    /* Runs instead of `closed` after conn_keep(): the owner gives the connection to a new owner
     * with conn->ops, and returns true; false: the connection fails. */
    bool (*keepalive)(struct fb_conn *conn);
    /* Calls conn_connect_again(), for want of a descriptor a turn ago. NULL: the connect fails. */
    void (*connect_again)(struct fb_conn *conn);
    /* Notes the errno with which a system call on the connection has failed; NULL: is not told. */
    void (*failed)(struct fb_conn *conn, int error);
    /* Logs a failure of our connect(), or of binding the local address; NULL: an error line. */
    void (*connect_failed)(struct fb_conn *conn, int error, enum io_step step);
    /* The first byte of the peer has come, in a pipe: calls what conn_pipe() was given, or (NULL)
     * changes no connection. */
    void (*first_byte)(struct fb_conn *conn, conn_first_byte call);
    /* Fills in details of log lines; `client` has room for a second client. */
    void (*describe)(const struct fb_conn *conn, struct log_line *line, char client[ADDRESS_TEXT]);
};

/* The order matters to the predicates below; conn_steps has the legal steps. */
enum conn_phase {
    CONN_FREE, /* the slot holds no connection */
    /* `closed` has run: */
    CONN_LINGERING, /* input is discarded until the peer's FIN or lingering_timeout */
    CONN_LINGERED,  /* lingering is over; the next flush closes the socket */
    /* The owner uses it: */
    CONN_CONNECTING, /* our connect() has not been answered */
    CONN_OPENING,    /* the socket is connected, `opened` has not run */
    CONN_OPEN,
    /* Closed by the owner, or failed: */
    CONN_CLOSING,             /* sends what is unsent, then closes */
    CONN_KEEPING,             /* sends what is unsent, then `keepalive` runs */
    CONN_CLOSING_UNCONNECTED, /* closed before connect() was answered, with unsent output */
    CONN_FAILED,              /* the next flush ends it, with conn->reason */
    CONN_ENDING,              /* `closed` is running */
    CONN_PHASES,
};

/* The receiving and the sending half of a connection. */
enum conn_read { CONN_READ_ON, CONN_READ_STOPPED /* by the owner */, CONN_READ_ENDED /* EOF */ };
enum conn_write { CONN_WRITE_ON, CONN_WRITE_ENDING /* FIN follows the output */, CONN_WRITE_ENDED };

/* The activity of a client, for the statistics. */
enum conn_activity { CONN_WAITING, CONN_READING, CONN_WRITING };

/* A place in a list of connections, by slot numbers; 0: none. */
struct conn_link {
    uint32_t next, prev;
};

/* The peer's address, in fewer bytes than a sockaddr. */
struct conn_peer {
    sa_family_t family; /* AF_UNIX: nothing else is known */
    in_port_t port;
    uint32_t scope; /* AF_INET6 */
    union {
        struct in_addr in;
        struct in6_addr in6;
    };
};

struct fb_conn {
    struct source source;   /* the first member: a slot of the loop's table */
    struct conn_link timed; /* in a bucket of the net's wheel */
    struct conn_link among; /* in a list of the owner's */
    struct net *net;
    const struct conn_ops *ops;
    void *owner; /* the owner's, as are the next two */
    void *state;
    struct session_conn *session;
    struct conn_pipe_end *pipe;    /* end of a pipe, or NULL */
    struct chunk *in;              /* received and not consumed, or NULL */
    struct chunk *out;             /* the last of a ring of chunks to send, or NULL */
    size_t unsent;                 /* bytes in `out` */
    struct stats_traffic *traffic; /* where the bytes are counted, besides; the owner's choice */
    uint64_t received, sent;       /* bytes */
    uint64_t number;               /* in the log; no other worker's */
    uint64_t opened_ms;            /* monotonic; the owner's */
    uint64_t moved_ms; /* monotonic; when input was last given to `data`, or output left */
    struct conn_peer peer;
    uint32_t deadline;          /* if `limited`: the low bits of the loop's monotonic ms */
    uint32_t phase : 8;         /* enum conn_phase; only conn_set_phase() changes it */
    uint32_t read : 2;          /* enum conn_read; only conn_set_read() changes it */
    uint32_t write : 2;         /* enum conn_write; only conn_set_write() changes it */
    uint32_t paused : 1;        /* back-pressure: not read, for its unsent output */
    uint32_t counted : 2;       /* enum conn_activity by which a client is counted */
    uint32_t reason : 4;        /* fb_reason of a failure; 0: none */
    uint32_t by_pipe : 1;       /* piped, and read by the pipe's rules: spliced, or limited */
    uint32_t redeliver : 1;     /* unconsumed input is to be given to the owner again */
    uint32_t outgoing : 1;      /* made by connect(); else by accept() */
    uint32_t owner_knows : 1;   /* `closed` must run for the owner */
    uint32_t debug : 1;         /* debug_connection */
    uint32_t idle : 1;          /* the owner's: may be closed to drain, or to make room */
    uint32_t limited : 1;       /* a deadline is set: the owner's, or net/'s while lingering */
    uint32_t ends_stopped : 1;  /* a FIN ends the connection while reading is stopped */
    uint32_t unwritable : 1;    /* `unwritable` has run, and `writable` not yet */
    uint32_t session_phase : 4; /* the owner's, else 0; last, as the high bit is often asked */
};

/* An idle connection costs a slot and the protocol's state, no more. */
static_assert(sizeof(struct fb_conn) <= 256, "an idle connection has become dearer");

/* Whether any log takes a line of the connection. */
static inline bool conn_logs(const struct fb_conn *conn, enum log_level level)
{
    return unlikely(level <= conn->net->log->level || conn->debug);
}

static inline void conn_count_received(struct fb_conn *conn, size_t n)
{
    conn->received += n;
    stats_add(&conn->traffic->received, n);
}

static inline void conn_count_sent(struct fb_conn *conn, size_t n)
{
    conn->sent += n;
    stats_add(&conn->traffic->sent, n);
}

/* Restarts the idle time; the owner's timer asks conn_idle_ms() at the expiry. */
static inline void conn_note_moved(struct fb_conn *conn)
{
    conn->moved_ms = conn->net->loop.clock.mono_ms;
}

/* The time since a byte has moved. */
static inline uint64_t conn_idle_ms(const struct fb_conn *conn)
{
    return conn->net->loop.clock.mono_ms - conn->moved_ms;
}

/* Whether the owner's calls are valid: `closed` has not run. */
static inline bool conn_is_owned(const struct fb_conn *conn)
{
    return conn->phase >= CONN_CONNECTING;
}

/* Whether output can leave: the socket is connected and has an owner. */
static inline bool conn_can_send(const struct fb_conn *conn)
{
    return (unsigned)conn->phase - CONN_OPENING <= CONN_KEEPING - CONN_OPENING;
}

/* Whether the connection was neither closed by the owner nor has failed. */
static inline bool conn_is_active(const struct fb_conn *conn)
{
    return (unsigned)conn->phase - CONN_CONNECTING <= CONN_OPEN - CONN_CONNECTING;
}

static inline bool conn_has_failed(const struct fb_conn *conn)
{
    return conn->phase == CONN_FAILED || conn->phase == CONN_LINGERED;
}

/* Whether connect() lacks a descriptor and is tried again in the next turn: close idle
 * connections. */
static inline bool conn_lacks_descriptor(const struct fb_conn *conn)
{
    return unlikely(conn->source.fd == -1) && conn_is_active(conn);
}

static inline uint32_t conn_slot(const struct fb_conn *conn)
{
    const void *base = conn->net->loop.sources.base;

    return (uint32_t)(conn - (const struct fb_conn *)base) + 1;
}

static inline struct fb_conn *conn_at_slot(const struct net *net, uint32_t slot)
{
    void *base = net->loop.sources.base;

    return (struct fb_conn *)base + (slot - 1);
}

/* Returns the connection at an index of the loop's table, where one is. */
static inline struct fb_conn *conn_at_index(const struct net *net, uint32_t index)
{
    struct source *source = source_at(&net->loop.sources, index);
    struct fb_conn *conn = container_of(source, struct fb_conn, source);

    /* a listener's slot is zero behind the source: CONN_FREE */
    return source->in_use && conn->phase != CONN_FREE ? conn : NULL;
}

/* ---- Calls of owners: without an effect on an inactive connection ---- */

/* Calls `data` no more until resumed; unconsumed input is then offered again. */
void conn_stop(struct fb_conn *conn);
void conn_resume(struct fb_conn *conn);
/* Lets a stopped connection end with FB_PEER_GONE after the peer's half and all earlier input. */
void conn_end_with_peer(struct fb_conn *conn, bool ends);
/* Offers unconsumed input, also the rest of a running `data`, again from the loop. */
void conn_offer_again(struct fb_conn *conn);
/* Sends the unsent output, then ends our half; the end of the peer's half ends the connection. */
void conn_shutdown(struct fb_conn *conn);
/* Sends the unsent output, then closes. */
void conn_close(struct fb_conn *conn);
/* Sends the unsent output, then runs `keepalive`; or closes after bytes of the peer. */
void conn_keep(struct fb_conn *conn);
/* Ends the connection in the next flush; FB_ABORTED resets. */
void conn_fail(struct fb_conn *conn, fb_reason reason);
/* Fails a connection by the errno of a system call, and tells the owner. */
void conn_fail_by(struct fb_conn *conn, int error);
/* Fails a connection after a failed connect(), or one too long for the owner (ETIMEDOUT). */
void conn_connect_failed(struct fb_conn *conn, int error, enum io_step step);
/* Before and after the announcement of an owner's end of use of an open connection: in between
 * calls have no effect, as within `closed`, but failing. */
void conn_leave_begin(struct fb_conn *conn);
void conn_leave_end(struct fb_conn *conn);
/* Posts the run of `opened` to the normal queue. */
void conn_open_soon(struct fb_conn *conn);

/* ---- For net/ alone ---- */

/* Unsent bytes to stop reading at, and to go on at. */
#define CONN_HIGH_WATER (64 * 1024)
#define CONN_LOW_WATER (16 * 1024)

#define TO(phase) (1U << CONN_##phase)

/* The legal steps: the next phases of a phase, as bits. */
static const uint16_t conn_steps[CONN_PHASES] = {
    [CONN_FREE] = TO(CONNECTING) | TO(OPENING),
    [CONN_LINGERING] = TO(LINGERED) | TO(FREE),
    [CONN_LINGERED] = TO(FREE),
    [CONN_CONNECTING] = TO(OPENING) | TO(CLOSING_UNCONNECTED) | TO(FAILED) | TO(ENDING),
    [CONN_OPENING] = TO(OPEN) | TO(CLOSING) | TO(FAILED) | TO(ENDING),
    [CONN_OPEN] =
        TO(OPENING) /* for another owner */ | TO(CLOSING) | TO(KEEPING) | TO(FAILED) | TO(ENDING),
    [CONN_CLOSING] = TO(FAILED) | TO(ENDING),
    [CONN_KEEPING] = TO(OPEN) | TO(CLOSING) | TO(FAILED) | TO(ENDING),
    [CONN_CLOSING_UNCONNECTED] = TO(CLOSING) | TO(FAILED) | TO(ENDING),
    [CONN_FAILED] = TO(ENDING),
    [CONN_ENDING] = TO(OPEN) /* for another owner */ | TO(LINGERING) | TO(FREE),
};
#undef TO

/* Change the phase, the receiving half and the sending half, and assert that the step is legal. */
static inline void conn_set_phase(struct fb_conn *conn, enum conn_phase phase)
{
    assert((conn_steps[conn->phase] >> phase & 1) != 0);
    conn->phase = phase;
}

static inline void conn_set_read(struct fb_conn *conn, enum conn_read read)
{
    assert(conn->read != CONN_READ_ENDED); /* no state follows the end */
    assert(conn->read != (unsigned)read);
    conn->read = read;
}

void conn_set_write(struct fb_conn *conn, enum conn_write write);
fb_reason conn_reason_of(int error);
/* Tells the owner of the first errno. */
void conn_tell_failed(struct fb_conn *conn, int error);
/* Watches or pauses reading as conn_may_read() says. */
void conn_update_reading(struct fb_conn *conn);
/* Watches for what the connection waits for: room for output, or the end of our connect(). */
void conn_watch_writing(struct fb_conn *conn);
/* Watches for the end of our connect(), and for input too where one system call does both: a report
 * of input is left until `opened` has run. */
void conn_watch_connect(struct fb_conn *conn);
/* Offers unconsumed input to the owner again, and reads on. */
void conn_redeliver(struct fb_conn *conn);
/* Enters a connected socket's phase: `opened` will run. */
void conn_establish(struct fb_conn *conn);
/* Moves the client between gauges of the statistics. */
void conn_count_as(struct fb_conn *conn, enum conn_activity activity);
/* Ends a stopped connection after a break, or after the peer's end where the owner wants so. */
void conn_check_stopped(struct fb_conn *conn);
/* Does so to some of the stopped connections, by the timer for these; the caller flushes. */
void conn_check_all_stopped(struct net *net);

/* Whether input may be received and given to the owner. */
static inline bool conn_may_read(const struct fb_conn *conn)
{
    return (unsigned)conn->phase - CONN_OPENING <= CONN_OPEN - CONN_OPENING &&
           conn->read == CONN_READ_ON && !conn->paused;
}

/* Whether the owner may add output. */
static inline bool conn_may_write(const struct fb_conn *conn)
{
    return conn_is_active(conn) && conn->write == CONN_WRITE_ON;
}

static inline bool conn_is_connecting(const struct fb_conn *conn)
{
    return conn->phase == CONN_CONNECTING || conn->phase == CONN_CLOSING_UNCONNECTED;
}

/* Whether the report of our connect()'s end also proves success. */
static inline bool conn_is_told_connected(const struct fb_conn *conn)
{
    const struct source *source = &conn->source;

    return conn->net->loop.mechanism->tells_refused && !source->eof && source->io->pending == NULL;
}

static inline enum conn_activity conn_activity(const struct fb_conn *conn)
{
    if (conn->unsent > 0)
        return CONN_WRITING;
    return conn->in != NULL ? CONN_READING : CONN_WAITING;
}

static inline void conn_count(struct fb_conn *conn)
{
    enum conn_activity activity = conn_activity(conn);

    if (conn->counted != activity)
        conn_count_as(conn, activity);
}

/* Marks the connection dirty, for the flush after the running callback. The mark is the WRITE event
 * in the flush queue: no list link is needed, and the flush also handles the peer's taking
 * output. */
static inline void conn_mark_dirty(struct fb_conn *conn)
{
    struct loop *loop = &conn->net->loop;
    struct event *event = &conn->source.events[EVENT_WRITE];

    assert(conn->phase != CONN_FREE);
    if (event->queue == QUEUE_FLUSH)
        return;
    /* moved from where the mechanism may have posted it: borrowed input is lent no longer then */
    if (event->queue != QUEUE_NONE)
        loop_unpost(loop, event);
    loop_post(loop, event, QUEUE_FLUSH);
}

/* Leaves the flush of a dirty connection, which borrows nothing, to the next turn. */
static inline void conn_postpone_flush(struct fb_conn *conn)
{
    struct event *event = &conn->source.events[EVENT_WRITE];

    assert(event->queue == QUEUE_FLUSH);
    loop_unpost(&conn->net->loop, event);
    loop_post(&conn->net->loop, event, QUEUE_NEXT);
}

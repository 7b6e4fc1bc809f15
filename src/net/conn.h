/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection: a slot of the loop's table with its events, its deadline and nothing else; memory
 * for bytes is held only while the owner has not consumed or the peer has not taken them.
 *
 * Responsible for moving bytes between a socket and its owner's callbacks (struct conn_ops). The
 * callbacks run from the loop, never from the calls below: what a call asks for is done by the
 * flush that follows each callback. Invariant: the phase says who may do what, and only
 * conn_state.c changes it. */
#pragma once

#include "net/address.h"
#include "net/net.h"

#include <forkbeard/types.h>
#include <netinet/in.h>
#include <stdbool.h>

struct conn_pipe_end;

/* Owners' functions that a pipe has called when the first byte of its second end has come. */
typedef void (*conn_first_byte)(struct fb_conn *b, void *state);

struct conn_ops {
    void (*opened)(struct fb_conn *conn);
    /* Returns how many of the bytes were consumed. */
    size_t (*data)(struct fb_conn *conn, fb_bytes in);
    /* The peer has ended its half; `rest` is what was never consumed. */
    void (*eof)(struct fb_conn *conn, fb_bytes rest);
    /* Unsent output fell below the low-water mark after it had been above the high-water mark. */
    void (*writable)(struct fb_conn *conn);
    /* Returns how many bytes of memory may be unsent before `unwritable` runs; the owner that adds
     * to twice as many has its connection failed. NULL, as `unwritable` then: any number. */
    size_t (*output_limit)(const struct fb_conn *conn);
    /* The limit is reached; `writable` follows. */
    void (*unwritable)(struct fb_conn *conn);
    /* The owner's deadline of the connection is reached. */
    void (*expired)(struct fb_conn *conn);
    /* Runs once for every `opened`, and for every connect; afterwards the owner may not use the
     * connection. */
    void (*closed)(struct fb_conn *conn, fb_reason reason);
    /* Instead of `closed`, after conn_keep(): the owner gives the connection to another, sets
     * conn->ops to that one's, and returns true; false: the connection fails. */
    bool (*keepalive)(struct fb_conn *conn);
    /* No descriptor was left for its connect() a turn ago: begins it again by conn_connect_again().
     * NULL: the connect has failed. */
    void (*connect_again)(struct fb_conn *conn);
    /* Notes the errno with which a system call on the connection has failed; NULL: is not told. */
    void (*failed)(struct fb_conn *conn, int error);
    /* Logs that our connect() has failed, or the binding of its local address; NULL: an error
     * line. */
    void (*connect_failed)(struct fb_conn *conn, int error, enum io_step step);
    /* The first byte of the peer has come, in a pipe: calls what conn_pipe() was given. */
    void (*first_byte)(struct fb_conn *conn, conn_first_byte call);
    /* Fills in what log lines say besides the connection's client; `client` has room for
     * another's. */
    void (*describe)(const struct fb_conn *conn, struct log_line *line, char client[ADDRESS_TEXT]);
};

/* The phase of a connection. The order matters to the predicates below; conn_private.h has the
 * legal steps. */
enum conn_phase {
    CONN_FREE, /* the slot holds no connection */
    /* `closed` has run: */
    CONN_LINGERING, /* input is discarded until the peer's FIN or lingering_timeout */
    CONN_LINGERED,  /* lingering is over; the next flush closes the socket */
    /* The owner uses it: */
    CONN_CONNECTING, /* our connect() has not been answered */
    CONN_OPENING,    /* the socket is connected, `opened` has not run */
    CONN_OPEN,
    /* The owner has closed it, or it has failed: */
    CONN_CLOSING,             /* sends what is unsent, then closes */
    CONN_KEEPING,             /* sends what is unsent, then `keepalive` runs */
    CONN_CLOSING_UNCONNECTED, /* closed before connect() was answered, with unsent output */
    CONN_FAILED,              /* the next flush ends it, with conn->reason */
    CONN_ENDING,              /* `closed` is running */
    CONN_PHASES,
};

/* The half of a connection that receives, and the one that sends. */
enum conn_read { CONN_READ_ON, CONN_READ_STOPPED /* by the owner */, CONN_READ_ENDED /* EOF */ };
enum conn_write { CONN_WRITE_ON, CONN_WRITE_ENDING /* FIN follows the output */, CONN_WRITE_ENDED };

/* The activity of a client, for the statistics. */
enum conn_activity { CONN_WAITING, CONN_READING, CONN_WRITING };

/* A place in a list of connections, which are named by their slots; 0: none. */
struct conn_link {
    uint32_t next, prev;
};

/* The peer's address, without what nobody asks for. */
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
    void *session;
    struct conn_pipe_end *pipe; /* the pipe that moves its bytes, or NULL */
    struct chunk *in;           /* received and not consumed, or NULL */
    struct chunk *out;          /* the last of a ring of chunks to send, or NULL */
    size_t unsent;              /* bytes in `out` */
    uint64_t received, sent;    /* bytes */
    uint64_t number;            /* in the log; no other worker's */
    uint64_t opened_ms;         /* monotonic; the owner's */
    uint64_t moved_ms;          /* monotonic; when input was last given to `data`, or output left */
    struct conn_peer peer;
    uint32_t deadline;          /* if `limited`: the low bits of the loop's monotonic ms */
    uint32_t phase : 8;         /* enum conn_phase; only conn_set_phase() changes it */
    uint32_t read : 2;          /* enum conn_read; only conn_set_read() changes it */
    uint32_t write : 2;         /* enum conn_write; only conn_set_write() changes it */
    uint32_t paused : 1;        /* back-pressure: not read, for its unsent output */
    uint32_t counted : 2;       /* enum conn_activity by which a client is counted */
    uint32_t reason : 4;        /* fb_reason of a failure; 0: none */
    uint32_t by_pipe : 1;       /* piped, and how it is read is the pipe's: spliced, or limited */
    uint32_t redeliver : 1;     /* unconsumed input is to be given to the owner again */
    uint32_t outgoing : 1;      /* we have connected it; else it was accepted */
    uint32_t owner_knows : 1;   /* the owner has the connection, so that `closed` must run */
    uint32_t debug : 1;         /* debug_connection */
    uint32_t idle : 1;          /* the owner's: may be closed to drain, or to make room */
    uint32_t limited : 1;       /* a deadline is set: the owner's, or net/'s while it lingers */
    uint32_t ends_stopped : 1;  /* the end of the peer's half ends it while it is stopped */
    uint32_t unwritable : 1;    /* `unwritable` has run, and `writable` not yet */
    uint32_t session_phase : 4; /* the owner's, else 0; last, as its high bit is often asked */
};

/* Restarts the time without a byte moved: the owner's timer stays where it is, and the owner asks
 * conn_idle_ms() when it has expired. */
static inline void conn_note_moved(struct fb_conn *conn)
{
    conn->moved_ms = conn->net->loop.clock.mono_ms;
}

/* The time in which no byte has moved. */
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

/* Whether it was neither closed by its owner nor has failed. */
static inline bool conn_is_active(const struct fb_conn *conn)
{
    return (unsigned)conn->phase - CONN_CONNECTING <= CONN_OPEN - CONN_CONNECTING;
}

static inline bool conn_has_failed(const struct fb_conn *conn)
{
    return conn->phase == CONN_FAILED || conn->phase == CONN_LINGERED;
}

/* Returns the connection's slot as links name it. */
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

/* conn_deadline.c: Enter the connection into the wheel by its deadline, and take it out, with its
 * deadline. */
void conn_deadline_enter(struct fb_conn *conn);
void conn_deadline_leave(struct fb_conn *conn);
/* The deadline in ms of the monotonic clock; there is one. */
uint64_t conn_deadline_at(const struct fb_conn *conn);

/* Sets the deadline, in place of an earlier one: `expired` runs in `ms` (at least 1) from the
 * cached time, and at the latest in CONN_DEADLINE_MOST. */
static inline void conn_deadline_set(struct fb_conn *conn, uint64_t ms)
{
    struct net *net = conn->net;
    uint64_t now = net->loop.clock.mono_ms;
    uint32_t deadline =
        (uint32_t)now + (uint32_t)(ms < CONN_DEADLINE_MOST ? ms : CONN_DEADLINE_MOST) + (ms == 0);
    bool put_off = conn->limited && (int32_t)(deadline - conn->deadline) >= 0;

    conn->deadline = deadline;
    conn->limited = 1;
    if (put_off) {
        debug_source(&net->loop, &conn->source, "deadline put off: in %" PRIu64 " ms", ms);
    } else if (likely(ms >= CONN_DEADLINE_ASIDE && conn->timed.prev == 0)) {
        debug_source(&net->loop, &conn->source, "deadline set: in %" PRIu64 " ms", ms);
        if (unlikely(now + ms / 2 < net->wheel.look.at))
            conn_wheel_look_at(net, now + ms / 2);
    } else {
        conn_deadline_enter(conn);
    }
}

/* May be called where there is no deadline. */
static inline void conn_deadline_clear(struct fb_conn *conn)
{
    if (conn->timed.prev != 0)
        conn_deadline_leave(conn);
    else if (conn->limited)
        debug_source(&conn->net->loop, &conn->source, "deadline deleted: %" PRId32 " ms were left",
            (int32_t)(conn->deadline - (uint32_t)conn->net->loop.clock.mono_ms));
    conn->limited = 0;
}

/* conn_peer.c: Remembers an address; fills in one that was, or that of the connection's peer, of
 * which a unix socket's family alone is known. */
void conn_peer_set(struct conn_peer *peer, const struct sockaddr *address);
void conn_peer_of(const struct conn_peer *peer, struct address *out);
void conn_peer_address(const struct fb_conn *conn, struct address *out);

/* conn.c: Takes a slot for a connection on `fd`, which it owns from now on; the caller has to open
 * it. NULL when worker_connections are in use. */
struct fb_conn *conn_create(
    struct net *net, int fd, const struct sockaddr *peer, const struct conn_ops *ops, void *owner);

/* conn_state.c: Has `opened` run from the normal queue. */
void conn_open_soon(struct fb_conn *conn);
/* conn_input.c: Has `opened` run, and reads what has come already. Not within a callback. */
void conn_open(struct fb_conn *conn);
/* conn_connect.c: Makes a connection whose `opened` or `closed` will follow by itself. In the
 * log it bears the number of `client`, unless that is NULL. */
struct fb_conn *conn_connect(struct net *net, const struct fb_conn *client,
    const struct sockaddr *address, socklen_t length, struct io_connect *options,
    const struct conn_ops *ops, void *owner, void *session);
/* The same without a connect(), which conn_connect_again() or conn_take_over() has to make up for:
 * conn_connect_soon() has `connect_again` called in the next turn. */
struct fb_conn *conn_connect_later(struct net *net, const struct fb_conn *client,
    const struct sockaddr *address, const struct conn_ops *ops, void *owner, void *session);
void conn_connect_soon(struct fb_conn *conn);
/* Whether its connect() waits for a descriptor, for which the next turn tries once more: the owner
 * may have others closed meanwhile. */
static inline bool conn_lacks_descriptor(const struct fb_conn *conn)
{
    return conn->source.fd == -1 && conn_is_active(conn);
}
/* Begins the connect() of such a connection, or fails it. */
void conn_connect_again(struct fb_conn *conn, const struct sockaddr *address, socklen_t length,
    struct io_connect *options);
/* Gives such a connection the socket of an idle one of the keepalive pool, which ends. */
void conn_take_over(struct fb_conn *conn, struct fb_conn *from);
/* conn_state.c: Fails a connection whose connect() has failed, with a log line, or lasts too long
 * for its owner (ETIMEDOUT). */
void conn_connect_failed(struct fb_conn *conn, int error, enum io_step step);
/* Gives an idle connection of the keepalive pool to an owner, whose `opened` will run. */
void conn_reopen(struct fb_conn *conn, const struct conn_ops *ops, void *owner);

/* The calls for owners. On a connection that is not active they do nothing. */

/* conn_output.c: Adds to the output: copied, unless it lies within the input that is lent just
 * now. */
void conn_write(struct fb_conn *conn, const void *p, size_t n);
/* Sends from where the bytes lie; release(arg) runs once, from the loop. -1: nothing was taken. */
int conn_write_ref(
    struct fb_conn *conn, const void *p, size_t n, void (*release)(void *arg), void *arg);
/* Sends n bytes of a file, and closes its descriptor afterwards. -1: nothing was taken. */
int conn_write_file(struct fb_conn *conn, int fd, uint64_t offset, uint64_t n);
/* Sends what can be sent now. */
void conn_push(struct fb_conn *conn);

/* conn_state.c: Calls no more `data` until resumed; unconsumed input is then offered again. */
void conn_stop(struct fb_conn *conn);
void conn_resume(struct fb_conn *conn);
/* Lets a connection that is stopped end with FB_PEER_GONE when its peer has ended its half and all
 * that came before was received; or no longer. */
void conn_end_with_peer(struct fb_conn *conn, bool ends);
/* Offers unconsumed input, also what the running `data` will leave, again from the loop. */
void conn_offer_again(struct fb_conn *conn);
/* Sends what is unsent, then ends our half; ends the connection when the peer's has ended too. */
void conn_shutdown(struct fb_conn *conn);
/* Sends what is unsent, then closes. */
void conn_close(struct fb_conn *conn);
/* Sends what is unsent, then has `keepalive` run; or closes, where bytes were or are still
 * received. */
void conn_keep(struct fb_conn *conn);
/* Ends the connection in the next flush; FB_ABORTED resets. */
void conn_fail(struct fb_conn *conn, fb_reason reason);

/* Before and after an owner that gives an open connection to another is told of its end: between
 * them its calls do nothing, as within `closed`, but to fail the connection. */
void conn_leave_begin(struct fb_conn *conn);
void conn_leave_end(struct fb_conn *conn);

/* Does the same by the errno of a system call, which the owner is told. */
void conn_fail_by(struct fb_conn *conn, int error);

/* conn_flush.c: Ends the connection at once; not called from one of its own callbacks. */
void conn_end(struct fb_conn *conn, fb_reason reason);

struct conn_pipe_options {
    uint64_t timeout;           /* ms without a byte moved; 0: any */
    uint64_t rates[2];          /* bytes a second that are received from a, and from b; 0: any */
    size_t most;                /* bytes received at once, while they are copied; 0: any */
    bool ends_together;         /* the end of one peer's half ends both connections */
    bool b_break_ends;          /* a break of b ends `a` as the end of its half does */
    conn_first_byte first_byte; /* called when b's peer has sent the first byte; or NULL */
};

/* conn_pipe.c: Moves what each receives to the other until both have ended; -1 without memory. From
 * now on their owners are called for `closed` alone, and for b's first byte. */
int conn_pipe(struct fb_conn *a, struct fb_conn *b, const struct conn_pipe_options *options);
/* Returns when a byte last moved at either end of a connection's pipe, monotonic ms. */
uint64_t conn_pipe_moved_ms(const struct fb_conn *conn);

/* conn_check.c: Asserts what holds for every connection between callbacks. */
void conn_check(const struct fb_conn *conn);

/* conn_log.c: Logs a line with the connection's number, client and whatever its owner adds. */
void conn_log(const struct fb_conn *conn, enum log_level level, int error, const char *format, ...)
    PRINTF_FORMAT(4, 5);
/* The call has failed to move bytes. */
void conn_log_failed(
    const struct fb_conn *conn, enum log_transfer transfer, int error, const char *call);
/* Fills in what a line says of its connection; `client` is for its text. */
void conn_log_line(const struct fb_conn *conn, struct log_line *line, char client[ADDRESS_TEXT]);
void conn_vlog(
    const struct fb_conn *conn, enum log_level level, int error, const char *format, va_list args);

/* Whether debug lines are wanted: of every connection in a debug build, of chosen ones in any. */
static inline bool conn_debugs(const struct fb_conn *conn)
{
    return unlikely(conn->debug || (DEBUG_BUILD && conn->net->log->level >= LEVEL_DEBUG));
}
#define conn_debug(conn, ...)                                                                      \
    do {                                                                                           \
        if (conn_debugs(conn))                                                                     \
            conn_log((conn), LEVEL_DEBUG, 0, __VA_ARGS__);                                         \
    } while (0)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections: slots of an array, each with its events, its timer and nothing else; memory for bytes
 * is held only while the owner has not consumed or the peer has not taken them.
 *
 * The owner's callbacks (struct fb_conn_ops) are run from the loop, never from the calls below.
 * After each callback every connection that it touched is settled: its output leaves in one system
 * call, a close begins, a failure is told. */
#pragma once

#include "base/compiler.h"
#include "base/log.h"
#include "base/memory.h"
#include "event/loop.h"
#include "net/address.h"
#include "shm/shared.h"

#include <bsd/sys/queue.h>
#include <forkbeard/types.h>
#include <netinet/in.h>
#include <stdbool.h>

struct fb_chunk;
struct fb_net;
struct fb_pipe;

struct fb_conn_ops {
    void (*opened)(struct fb_conn *conn);
    /* Returns how many of the bytes were consumed. */
    size_t (*data)(struct fb_conn *conn, fb_bytes in);
    /* The peer has ended its half; `rest` is what was never consumed. */
    void (*eof)(struct fb_conn *conn, fb_bytes rest);
    /* Unsent output fell below the low-water mark after it had been above the high-water mark. */
    void (*writable)(struct fb_conn *conn);
    /* Some output has left. */
    void (*moved)(struct fb_conn *conn);
    void (*expired)(struct fb_conn *conn);
    /* Once for every `opened`, and for every connect; the connection is gone when it returns. */
    void (*closed)(struct fb_conn *conn, fb_reason reason);
    /* Instead of `closed`, after fb_conn_keep(): it goes on without its owner, once `closing` is 0. */
    void (*kept)(struct fb_conn *conn);
    /* Fills in what log lines say of it besides its own client; `client` has room for another's. */
    void (*describe)(
        const struct fb_conn *conn, struct fb_log_line *line, char client[FB_ADDRESS_TEXT]);
};

enum fb_conn_state { FB_CONN_WAITING, FB_CONN_READING, FB_CONN_WRITING };

struct fb_conn {
    struct fb_source source; /* the first member: a slot of the loop's table */
    struct fb_timer timer;   /* the owner's; of a lingering connection: ours */
    struct fb_net *net;
    const struct fb_conn_ops *ops;
    void *owner; /* the owner's; so are the next two */
    void *state;
    void *side;
    struct fb_pipe *pipe;    /* that moves its bytes, or NULL */
    struct fb_chunk *in;     /* received and not consumed, or NULL */
    struct fb_chunk *out;    /* the last of a ring of chunks to send, or NULL */
    size_t unsent;           /* bytes in `out` */
    uint64_t received, sent; /* bytes */
    uint64_t number;         /* in the log; counted by the worker */
    union {
        sa_family_t family; /* AF_UNIX: nothing else is known */
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } peer;
    uint32_t outgoing : 1;   /* we have connected it */
    uint32_t connecting : 1; /* ... which has not been answered */
    uint32_t opening : 1;    /* `opened` has not been called */
    uint32_t stopped : 1;    /* by its owner */
    uint32_t held : 1;       /* not read, for its unsent output */
    uint32_t eof : 1;        /* the peer's end has been read */
    uint32_t redeliver : 1;  /* what was not consumed is to be offered again */
    uint32_t shutting : 1;   /* our half ends when its output has left */
    uint32_t shut : 1;       /* ... and has */
    uint32_t closing : 1;    /* closes when its output has left */
    uint32_t keeping : 1;    /* ... or rather is kept */
    uint32_t lingering : 1;  /* closed for its owner; input is read and dropped */
    uint32_t pushed : 1;     /* output has left, and the owner was not told */
    uint32_t failed : 4;     /* a fb_reason: ends as soon as it is settled */
    uint32_t counted : 2;    /* the enum fb_conn_state by which it is counted */
    uint32_t debug : 1;      /* debug_connection */
    uint32_t heard : 1;      /* the owner's: something was received, or need not be */
    uint32_t idle : 1;       /* the owner's: may be closed to drain */
};

/* Where bytes lie that the kernel moves. */
struct fb_pipe_ends {
    int read, write;
};

#define FB_SPARE_PIPES 8

struct fb_net {
    struct fb_loop loop; /* the first member: handlers are given the loop */
    struct fb_log *log;
    struct fb_counters *counters; /* this worker's */
    struct fb_heartbeat *heartbeat, own_heartbeat;
    const struct fb_memory *memory; /* for whatever a connection needs */
    uint32_t connections_max, connection_n;
    uint32_t client_n; /* of the connections, those that were accepted */
    uint64_t last_number;
    uint64_t lingering_timeout; /* ms */
    /* Called when a connection's slot has become free. */
    void (*released)(struct fb_net *net);

    uint8_t *scratch; /* what connections without unconsumed input receive into */
    size_t scratch_size;
    fb_bytes lent;                  /* what the callback that runs now may borrow in its output */
    struct fb_chunk *borrowed_from; /* the chunk that `lent` lies in, or NULL */
    bool settling;
    struct fb_chunk *spare_chunks, *spare_views; /* kept for the next writer */
    unsigned spare_chunk_n, spare_view_n;
    struct fb_chunk *dropped; /* whose owners are to be told, after the callback */
    struct fb_pipe_ends spare_pipes[FB_SPARE_PIPES];
    unsigned spare_pipe_n;
};

struct fb_net_options {
    uint32_t connections_max;
    uint32_t listeners; /* slots for listeners and the worker's channel besides */
    const struct fb_mechanism *mechanism;
    int64_t mechanism_option;
    const sigset_t *wait_mask;
    struct fb_log *log;
    struct fb_counters *counters;
    struct fb_heartbeat *heartbeat; /* NULL: nobody looks at it */
    uint64_t lingering_timeout;     /* ms */
    const struct fb_memory *memory; /* NULL: the allocator's */
};

/* -1 after an emerg line, with nothing left to undo. */
int fb_net_init(struct fb_net *net, const struct fb_net_options *options);
/* No connection is open any more, and every listener's source has been put back. */
void fb_net_done(struct fb_net *net);

static inline struct fb_net *fb_net_of(struct fb_loop *loop)
{
    return fb_container(loop, struct fb_net, loop);
}

/* A slot for a connection on `fd`, which it owns from now on, whose `opened` will run from the
 * normal queue; NULL when worker_connections are in use. */
struct fb_conn *fb_conn_create(struct fb_net *net, int fd, const struct sockaddr *peer,
    const struct fb_conn_ops *ops, void *owner);

/* The same for a connection that we make: `opened` or `closed` will follow. In the log it bears the
 * number of `client`, unless that is NULL. */
struct fb_conn *fb_conn_connect(struct fb_net *net, const struct fb_conn *client,
    const struct sockaddr *address, socklen_t length, const struct fb_conn_ops *ops, void *owner,
    void *side);
/* Its connect has failed, which an error line says, or lasts too long for its owner (ETIMEDOUT). */
void fb_conn_refused(struct fb_conn *conn, int error);
/* A kept connection has an owner again, whose `opened` will run. */
void fb_conn_reopen(struct fb_conn *conn, const struct fb_conn_ops *ops, void *owner);

/* The calls for owners. On a connection that is closing or has failed they do nothing. */

/* Adds to the output: copied, unless it lies within the input that is lent just now. */
void fb_conn_write(struct fb_conn *conn, const void *p, size_t n);
/* Sends from where it is; release(arg) runs once, from the loop. -1: nothing was taken. */
int fb_conn_write_ref(
    struct fb_conn *conn, const void *p, size_t n, void (*release)(void *arg), void *arg);
/* n bytes of a file, which is closed in the end. -1: nothing was taken. */
int fb_conn_write_file(struct fb_conn *conn, int fd, uint64_t offset, uint64_t n);
/* Sends what can be sent now. */
void fb_conn_push(struct fb_conn *conn);
/* No more `data` until resumed; what was not consumed is then offered again. */
void fb_conn_stop(struct fb_conn *conn);
void fb_conn_resume(struct fb_conn *conn);
/* Sends what is unsent, then ends our half; ends the connection when the peer's has ended too. */
void fb_conn_shutdown(struct fb_conn *conn);
/* Sends what is unsent, then closes. */
void fb_conn_close(struct fb_conn *conn);
/* Sends what is unsent, then has `kept` run; or closes, where something was or is still received. */
void fb_conn_keep(struct fb_conn *conn);
/* Ends at once; FB_ABORTED resets. */
void fb_conn_fail(struct fb_conn *conn, fb_reason reason);

/* Ends it within the caller, who is not one of its callbacks. */
void fb_conn_end(struct fb_conn *conn, fb_reason reason);

/* Memory of which all is given back at once, and *arena set to NULL, which it also is at first.
 * Aligned for any type; NULL without memory. */
void *fb_net_alloc(struct fb_net *net, struct fb_chunk **arena, size_t n);
void fb_net_release(struct fb_net *net, struct fb_chunk **arena);

/* Moves what each receives to the other until both have ended (pipe.c). -1 without memory. From now
 * on their owners are called for `closed` alone. */
int fb_conn_pipe(struct fb_conn *a, struct fb_conn *b, uint64_t timeout_ms);

/* After callbacks that were not run by net/ itself. */
void fb_net_settle(struct fb_net *net);
/* Visits every connection, then settles them; a visit ends none itself. */
void fb_net_each(struct fb_net *net, void (*visit)(struct fb_conn *conn, void *arg), void *arg);
/* Ends every connection at once, with `reason`. */
void fb_net_fail_all(struct fb_net *net, fb_reason reason);

/* The time begins again in which something has to move: as fb_timer_set(), which may leave a timer
 * where it lies, but not where that is much of the time. */
void fb_net_restart(struct fb_net *net, struct fb_timer *timer, uint64_t ms);

/* A line with the connection's number, client and whatever its owner adds. */
void fb_conn_log(struct fb_conn *conn, enum fb_level level, int error, const char *format, ...)
    FB_PRINTF(4, 5);
void fb_conn_vlog(
    struct fb_conn *conn, enum fb_level level, int error, const char *format, va_list args);

/* Debug lines: of every connection in a debug build, of chosen ones in any. */
static inline bool fb_conn_debugs(const struct fb_conn *conn)
{
    return fb_unlikely(conn->debug || (FB_DEBUG_BUILD && conn->net->log->level >= FB_DEBUG));
}
#define fb_conn_debug(conn, ...)                                                                   \
    do {                                                                                           \
        if (fb_conn_debugs(conn))                                                                  \
            fb_conn_log((conn), FB_DEBUG, 0, __VA_ARGS__);                                         \
    } while (0)

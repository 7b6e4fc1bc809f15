/* SPDX-License-Identifier: BSD-2-Clause */
/* The connections of a worker: loop, counts, memory and the flush.
 *
 * Responsible for slots, for the scratch buffer, and for flushing dirty connections after each
 * callback. Never accepts and never decides when a connection ends. Invariant: outside of a flush
 * and of a callback no connection is dirty, and connection_n is the number of slots whose phase is
 * not CONN_FREE. */
#pragma once

#include "base/compiler.h"
#include "base/log.h"
#include "base/memory.h"
#include "event/loop.h"
#include "net/chunk.h"
#include "shm/shared.h"
#include "shm/stats.h"

#include <forkbeard/types.h>
#include <sys/uio.h>

/* The ends of a pipe(2), for splicing. */
struct pipe_ends {
    int read, write;
};

#define NET_SPARE_PIPES 8
/* Bytes of the receive buffer. */
#define NET_SCRATCH (64 * 1024)
/* No descriptor is kept, because none can be. */
#define NET_NO_SPARE (-2)
/* The greatest excess of connections over connections_max. */
#define NET_OVERDRAFT 32
/* Bytes of copied output without a chunk until the flush. */
#define NET_LITTLE 2048
/* Pieces of memory for one system call. */
#define NET_PIECES 64

/* Levels of the wheel of deadlines; the last reaches as far as any clock. */
#define CONN_WHEEL_LEVELS 8

struct conn_wheel {
    uint64_t now;  /* ms: where buckets are counted from; not after the loop's clock */
    uint64_t next; /* ms: no used bucket begins before; UINT64_MAX: none is used */
    uint64_t used[CONN_WHEEL_LEVELS];       /* bits: buckets that hold connections */
    uint32_t first[CONN_WHEEL_LEVELS * 64]; /* the first slot of each bucket; 0: none */
    void (*expired)(struct fb_conn *conn);
    struct timer timer; /* for `next` */
    struct {
        uint64_t at;        /* ms: when the next begins; UINT64_MAX: nothing was left aside since */
        uint32_t index;     /* slot to be looked at next; 0: no look is under way */
        struct timer timer; /* for `at`, or to go on */
    } look;                 /* for deadlines that were left aside */
};

struct fb_conn;

struct net {
    struct loop loop; /* the first member: handlers are given the loop */
    struct log *log;
    struct counters *counters;    /* this worker's */
    struct stats_traffic traffic; /* bytes of connections that are counted nowhere else */
    struct heartbeat *heartbeat;
    const struct memory *memory; /* for whatever a connection needs */
    uint32_t connections_max, connection_n;
    /* connections beyond connections_max that may be made now, because as many are being closed */
    uint32_t overdraft;
    uint32_t reserved; /* slots reserved by owners for future connections */
    int spare_fd; /* kept for a client's connection to a server; NET_NO_SPARE, or -1: used up */
    uint32_t client_n;                /* connections that were accepted, among connection_n */
    uint64_t last_number, number_end; /* connections': the last one given, the block's */
    _Atomic uint64_t *numbers;        /* the source of blocks of numbers, or NULL: our own */
    unsigned numbers_n;               /* numbers of a block */
    uint64_t lingering_timeout;       /* ms */
    bool unfiltered;                  /* clients may have SO_LINGER, removed before a close */
    /* Called for each freed slot, `awaited` while the worker waits for a slot; or NULL. */
    void (*released)(struct net *net);
    void (*awaited)(struct net *net);

    uint8_t *scratch; /* receive buffer of connections without unconsumed input */
    size_t scratch_size;
    fb_bytes lent;            /* input lent to the running callback's output; n is 0: none */
    struct fb_conn *borrower; /* the output ends with lent input or with `little`, or NULL */
    fb_bytes borrowed;        /* what of these */
    bool flushing;
    struct chunk_pool chunks;
    struct layers *layers;   /* of connections with TLS (tls/layer.h), the owner's; or NULL */
    struct spares pipes;     /* for struct conn_pipe */
    struct conn_wheel wheel; /* the connections' deadlines */
    struct {
        struct timer timer;
        uint32_t index;                            /* the next slot to look at */
        bool found;                                /* whether there may be a stopped connection */
    } stopped;                                     /* the looks at stopped connections (conn.c) */
    struct io_span received;                       /* by the last receive without kept input */
    struct iovec pieces[NET_PIECES];               /* the sending system call's */
    struct pipe_ends spare_pipes[NET_SPARE_PIPES]; /* empty pipes of the kernel */
    unsigned spare_pipe_n;
    uint8_t little[NET_LITTLE]; /* the usual output of a flush at once */
};

struct net_options {
    uint32_t connections_max;
    uint32_t listeners; /* slots for listeners and the worker's channel besides */
    const struct mechanism *mechanism;
    struct mechanism_values mechanism_values;
    const sigset_t *wait_mask;
    struct log *log;
    struct counters *counters;
    struct heartbeat *heartbeat;
    _Atomic uint64_t *numbers;   /* connection counter of all workers; NULL: a private one */
    bool numbers_in_a_row;       /* clients of all workers get numbers in order of arrival */
    uint64_t lingering_timeout;  /* ms */
    bool unfiltered;             /* as above */
    const struct memory *memory; /* NULL: the C library's allocator */
};

/* Returns -1 after an emerg line, with nothing left to undo. */
int net_init(struct net *net, const struct net_options *options);
/* Requires that no connection is open and every listener's source has been put back. */
void net_done(struct net *net);

static inline struct net *net_of_loop(struct loop *loop)
{
    return container_of(loop, struct net, loop);
}

/* Flushes dirty connections: output leaves by one system call each, a close begins, failures end.
 * Called after each callback; does nothing within a flush. */
void net_flush(struct net *net);

/* Keeps slots for connections to come, or, with a negative number, keeps them no more. */
static inline void net_reserve(struct net *net, int32_t n)
{
    assert(n >= 0 || net->reserved >= (uint32_t)-n);
    net->reserved += (uint32_t)n;
    counters_add(net->counters, COUNTER_SLOTS, n);
}

/* Whether there are no free slots for n more clients and their connections to servers. */
static inline bool net_lacks_slots(const struct net *net, uint32_t n)
{
    return net->connection_n + net->reserved + n > net->connections_max;
}

static inline bool net_is_full(const struct net *net)
{
    return net->connection_n + net->reserved >= net->connections_max + net->overdraft;
}

/* Keeps a descriptor for a connection to a server; false, with errno: there is none. */
bool net_keep_spare(struct net *net);
/* Frees the spare descriptor for a connection in need; false: used up. */
bool net_free_spare(struct net *net);

/* Lets a new connection be made in place of an ending connection, about to free its slot. */
static inline void net_lend_slot(struct net *net)
{
    net->overdraft += net->overdraft < NET_OVERDRAFT;
}

void net_take_numbers(struct net *net);
/* Returns a new connection's number, unique among workers. */
static inline uint64_t net_next_number(struct net *net)
{
    if (unlikely(net->last_number == net->number_end))
        net_take_numbers(net);
    return ++net->last_number;
}
/* Visits every connection, then flushes; the visitor itself ends no connection. */
void net_each(struct net *net, void (*visit)(struct fb_conn *conn, void *arg), void *arg);
/* Returns the next open connection from slot *index on, or NULL; begins with *index 0. */
struct fb_conn *net_next_conn(const struct net *net, uint32_t *index);
/* Ends every connection at once, with `reason`. */
void net_fail_all(struct net *net, fb_reason reason);
/* Asserts the invariants of all connections; not within a callback's own changes. */
void net_check(const struct net *net);

/* Allocates from an arena, and frees an arena: see chunk_arena_alloc(). */
static inline void *net_alloc(struct net *net, struct chunk **arena, size_t n)
{
    return chunk_arena_alloc(&net->chunks, arena, n);
}

static inline void net_release(struct net *net, struct chunk **arena)
{
    chunk_arena_release(&net->chunks, arena);
}

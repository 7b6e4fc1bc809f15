/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker: one event loop and its sessions, from the fork to the exit code. The phase only goes
 * forward, by worker_set_phase(). No file of worker/ opens a path or starts a process. */
#pragma once

#include "base/trace.h"
#include "channel/channel.h"
#include "os/memory.h"
#include "process/heritage.h"
#include "process/signals.h"
#include "session/conn.h"
#include "worker/acceptors.h"
#include "worker/busy_poll.h"
#include "worker/file_reads.h"
#include "worker/jobs.h"
#include "worker/map_watch.h"
#include "worker/protocols.h"
#include "worker/session_lists.h"
#include "worker/tls.h"
#include "worker/watches.h"

struct messages;
struct names;
struct threads;

/* Bytes of a number's text. */
#define SAMPLE_TEXT 12

enum worker_phase {
    WORKER_STARTING, /* sets up everything but accepting */
    WORKER_READY,    /* waits until it may accept: for the master's word, or for our own */
    WORKER_SERVING,
    WORKER_DRAINING, /* the listeners are released, and sessions finish */
    WORKER_ENDING,   /* ends as soon as possible: sessions are closed */
    WORKER_DONE,     /* holds nothing any more */
};

struct worker {
    struct stream stream; /* the first member */
    const struct heritage *heritage;
    struct cycle *cycle;
    enum role role; /* ROLE_WORKER, or ROLE_SINGLE without a master */
    enum worker_phase phase;
    struct log log;
    struct log_limit log_limit;
    struct timer log_due;    /* when held-back lines are summed up */
    struct timer log_repair; /* until then no broken log is repaired again */
    struct timer log_flush;  /* when lines that wait for a connection are sent */
    struct acceptors accept;
    struct busy_poll busy_poll;
    struct source *channel;       /* NULL in a single process, and when the master has gone */
    struct channel_end to_master; /* closed when the channel is */
    struct timer shutdown;        /* worker_shutdown_timeout, then the time of jobs beyond */
    bool shutdown_passed;
    struct timer others; /* time to hear of messages in, when a drain waits for nothing else */
    bool others_passed;
    struct worker_tls tls;
    bool jobs_left;     /* some still run, and have been left to the process's end */
    struct timer alive; /* a single process: the next "alive" to the service manager */
    bool term_received; /* a SIGTERM has come */
    struct fb_worker protocols[STREAM_PROTOCOLS_MAX]; /* at their index */
    struct file_reads file_reads;
    struct posts posts;
    struct watches watches;
    struct map_watches map_watches;
    struct session_lists session_lists;
    struct threads *threads;   /* from the first job on; else NULL */
    struct names *names;       /* NULL: unused by the configuration */
    struct messages *messages; /* from the first connection with a reference on; else NULL */
    void (*random)(struct worker *worker, void *p, size_t n);
    char sample_texts[2][SAMPLE_TEXT]; /* labels of the last sample (sdk/samples.c) */
};

static inline struct worker *worker_of_loop(struct loop *loop)
{
    return container_of(loop, struct worker, stream.net.loop);
}

/* The protocol of a connection, in this worker. */
static inline struct fb_worker *worker_protocol_of(const struct fb_conn *conn)
{
    struct worker *worker = container_of(conn->net, struct worker, stream.net);
    unsigned index = session_server_of(conn)->protocol_index;

    assert(index < STREAM_PROTOCOLS_MAX);
    return &worker->protocols[index];
}

/* The process of a protocol's handle. */
static inline struct worker *worker_of(const struct fb_worker *handle)
{
    if (unlikely(handle->worker == NULL)) /* a child of fork() */
        os_wiped_end();
    return handle->worker;
}

/* Logs an emerg line, of an errno or 0; returns -1. */
#define worker_fail(worker, ...) (log_put(&(worker)->log, LEVEL_EMERG, __VA_ARGS__), -1)

/* Makes a call of a protocol's callback; ends a child of fork() that returns from there. */
#define WORKER_CALL(handle, callback, call)                                                        \
    do {                                                                                           \
        const struct worker *calling = (handle)->worker;                                           \
        trace_callback_begin((handle)->protocol->name, heartbeat_callback_names[callback], 0);     \
        heartbeat_begin(calling->stream.net.heartbeat, callback, (handle)->index);                 \
        call;                                                                                      \
        if (calling->stream.net.memory == NULL)                                                    \
            os_wiped_end();                                                                        \
        trace_callback_end();                                                                      \
        heartbeat_end(calling->stream.net.heartbeat);                                              \
    } while (0)

/* Gets a source of the loop; NULL without a free slot. */
static inline struct source *worker_source(
    struct worker *worker, int fd, const struct source_ops *ops)
{
    struct source *source = source_get(&worker->stream.net.loop.sources);

    if (source == NULL)
        return NULL;
    source->fd = fd;
    source->ops = ops;
    source->io = &io_socket;
    return source;
}

/* Runs a worker in this process, from the fork to the returned exit code. */
int worker_main(const struct heritage *heritage, enum role role);
/* Sets up everything but accepting, up to WORKER_READY; -1 after an emerg line. */
int worker_init(struct worker *worker, const struct heritage *heritage, enum role role);
/* Turns the loop until the worker is ending, has drained, or its loop has failed. */
void worker_run(struct worker *worker);
/* Closes everything open, from any phase, up to WORKER_DONE. */
void worker_done(struct worker *worker);

/* turn.c: Goes to the next phase; phases may be left out, but never come again. */
void worker_set_phase(struct worker *worker, enum worker_phase phase);
void worker_turn(struct worker *worker);
/* Whether a worker has drained, or is ending; limits the time for the last outcomes of messages. */
bool worker_has_ended(struct worker *worker);
void worker_check(const struct worker *worker);

/* commands.c: Watches the channel to the master, where there is one; -1 after an emerg line. */
int worker_open_channel(struct worker *worker);
/* Carries out the commands of signals, after signals_pending(). */
void worker_take_commands(struct worker *worker);
/* Without a master: reports to the service manager that the worker serves, and then lives. */
void worker_notify_serving(struct worker *worker);

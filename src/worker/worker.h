/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker: one event loop and its sessions, until it is told to end. */
#pragma once

#include "base/log_limit.h"
#include "process/channel.h"
#include "process/heritage.h"
#include "process/signals.h"
#include "shm/metrics.h"
#include "stream/stream.h"

/* A listening socket as this worker watches it. */
struct fb_acceptor {
    struct fb_source source; /* the first member: a slot of the loop's table */
    struct fb_listener *listener;
    bool own;  /* a reuseport socket that only this worker serves: no mutex needed */
    bool look; /* to be accepted from until it is empty */
};

struct fb_acceptors {
    struct fb_acceptor **list;
    unsigned n;
    bool open;            /* the master has let us accept, and we are not ending */
    bool mutex;           /* shared listeners are watched by the holder of the accept mutex alone */
    bool exclusive;       /* ... or by all, of whom the kernel wakes one */
    bool holds;           /* the accept mutex */
    bool watching;        /* the shared listeners, as its holder */
    int64_t disabled;     /* accept_disabled: turns to leave the mutex to others */
    bool paused;          /* for a shortage, until `resume` or a free slot */
    bool full;            /* ... of slots */
    uint64_t shortage_at; /* when the last one was, to say so once; 0: never */
    struct fb_timer resume;
};

/* What a protocol has in this worker. */
struct fb_worker_protocol {
    void *state;     /* its worker_state */
    fb_shm_row *row; /* of its metrics */
    bool started;
};

struct fb_worker {
    struct fb_stream stream; /* the first member */
    const struct fb_heritage *heritage;
    struct fb_cycle *cycle;
    enum fb_role role;
    struct fb_log log;
    struct fb_log_limit log_limit;
    struct fb_timer log_due;
    struct fb_acceptors accept;
    struct fb_source *channel; /* NULL in a single process, and when the master has gone */
    struct fb_timer shutdown;  /* worker_shutdown_timeout */
    struct fb_timer alive;     /* a single process: when the service manager is told so */
    bool draining;
    bool termed;                                           /* a SIGTERM has come */
    bool ending;                                           /* as soon as possible */
    struct fb_worker_protocol protocols[FB_PROTOCOLS_MAX]; /* at their index */
    struct fb_threads *threads;                            /* once there was a job; NULL */
    struct fb_mail *mail;                                  /* once a connection had a name; NULL */
    void (*random)(struct fb_worker *worker, void *p, size_t n);
};

static inline struct fb_worker *fb_loop_worker(struct fb_loop *loop)
{
    return fb_container(
        fb_container(fb_net_of(loop), struct fb_stream, net), struct fb_worker, stream);
}

/* The process's part of a life as a worker: from the fork to its exit code. */
int fb_worker_main(const struct fb_heritage *heritage, enum fb_role role);

/* Sets up everything but accepting; -1 after an emerg line, with nothing left to undo. */
int fb_worker_init(struct fb_worker *worker, const struct fb_heritage *heritage, enum fb_role role);
/* Turns the loop until it has been told to end and every session has. */
void fb_worker_run(struct fb_worker *worker);
void fb_worker_done(struct fb_worker *worker);

/* One turn (turn.c). */
void fb_worker_turn(struct fb_worker *worker);

/* Accepting (accept.c) */
int fb_accept_init(struct fb_worker *worker);
void fb_accept_open(struct fb_worker *worker);
/* Accepts what is waiting, then stops watching and closes the listeners. */
void fb_accept_close(struct fb_worker *worker);
/* Looks at every listener once: a client may be stranded there. */
void fb_accept_look(struct fb_worker *worker);
/* A turn's step 2: who watches the listeners, and how long the wait may be. */
void fb_accept_before(struct fb_worker *worker, int *timeout);
/* ... and the end of step 5. */
void fb_accept_after(struct fb_worker *worker);

/* What the master and signals ask for (orders.c) */
int fb_worker_open_channel(struct fb_worker *worker);
void fb_worker_tell(struct fb_worker *worker, enum fb_message_kind kind);
/* `fd` stays the caller's. */
void fb_worker_tell_with(
    struct fb_worker *worker, enum fb_message_kind kind, uint32_t argument, int fd);
void fb_worker_take_orders(struct fb_worker *worker);
/* A single process, which serves now, or begins to end: tells the service manager (single.c). */
void fb_single_serves(struct fb_worker *worker);
void fb_single_ends(struct fb_worker *worker);
/* The master has handed over the inbox of a worker, or says that it has gone. */
void fb_mail_peer(struct fb_worker *worker, struct fb_message *message);
void fb_mail_gone(struct fb_worker *worker, uint32_t peer);
/* There is no master any more to ask. */
void fb_mail_alone(struct fb_worker *worker);
void fb_mail_done(struct fb_worker *worker);

/* The log (logs.c) */

/* From now on lines are limited as the configuration says. */
void fb_worker_limit_log(struct fb_worker *worker);
/* Has a broken log repaired, and sees to it that what is held back is said. */
void fb_worker_tend_log(struct fb_worker *worker);
/* The master has opened the log's file again; the message is left with the old descriptor. */
void fb_worker_log_reopened(struct fb_worker *worker, struct fb_message *message);

/* Protocols (protocols.c): those that the configuration's servers have. */
int fb_protocols_start(struct fb_worker *worker);
void fb_protocols_stop(struct fb_worker *worker);

/* Jobs (threads.c): as fb_run() says. */
int fb_threads_run(struct fb_worker *worker, void (*work)(void *job),
    void (*done)(struct fb_worker *worker, void *job), const void *job, size_t n);
/* Jobs that are not done. */
unsigned fb_threads_busy(const struct fb_worker *worker);
/* Leaves those that still run to the process's end. */
void fb_threads_done(struct fb_worker *worker);

/* References and messages (mail.c): as fb_ref_of(), fb_find() and fb_send_message() say. */
fb_ref fb_mail_ref(struct fb_worker *worker, struct fb_conn *conn);
struct fb_conn *fb_mail_find(struct fb_worker *worker, fb_ref ref);
uint64_t fb_mail_send(
    struct fb_worker *worker, struct fb_conn *from, fb_ref to, const void *p, size_t n);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool: generations of workers, of which one serves. A generation is the workers of one
 * reading of the configuration; a new one takes the place of another in a transaction
 * (generation.c). The pool forks, replaces, kills and ends workers, and listens to them. It
 * knows nothing of commands, reloads, control sockets and pid files: what its owner must know
 * goes through `struct pool_ops`. Nothing that a worker says or writes is asserted on. */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "event/timer.h"
#include "net/adopted.h"
#include "process/channel.h"
#include "process/descriptors.h"
#include "settings/cycle.h"
#include "shm/shared.h"

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum pool_worker_phase {
    POOL_WORKER_EMPTY,     /* no process: not forked yet, or waiting to be replaced */
    POOL_WORKER_STARTING,  /* forked */
    POOL_WORKER_READY,     /* set up, but for accepting */
    POOL_WORKER_ACCEPTING, /* accepts clients */
    POOL_WORKER_RELEASED,  /* released the listeners for good */
};

/* Why the master kills a worker; death.c has a name and a sentence for each. */
enum pool_kill {
    POOL_KILL_NONE,
    POOL_KILL_START_LATE,   /* neither ready nor accepting within worker_start_timeout */
    POOL_KILL_STUCK,        /* worker_watchdog: SIGABRT, and later SIGKILL */
    POOL_KILL_DRAIN_LATE,   /* told to drain, and there a second after worker_shutdown_timeout */
    POOL_KILL_CLOSE_LATE,   /* told to end at once */
    POOL_KILL_CHANNEL_LOST, /* closed its end of the channel, and lives */
    POOL_KILLS,
};

/* Why a worker has ended: what it was killed for (POOL_KILL_NONE: nothing, it was told to end), or
 * one of these. */
enum pool_death {
    POOL_DEATH_SIGNAL = POOL_KILLS, /* a crash, or a signal that was not ours */
    POOL_DEATH_EXIT,                /* exit() or pthread_exit(), which nobody has asked for */
    POOL_DEATH_WAIT,                /* could not wait for events */
    POOL_DEATH_START,               /* could not start, and has said why */
    POOL_DEATHS,
};

/* Findings of the watchdog about one worker. */
struct pool_watch {
    uint64_t heartbeat; /* the value that was read last */
    uint64_t since_ms;  /* when that value was read first; 0: never */
    unsigned repeats;   /* how often it was read again, unchanged */
};

/* The master's record of one of worker_processes; filled again when its process has exited. */
struct pool_worker {
    struct generation *generation;
    unsigned index; /* among the generation's workers */
    enum pool_worker_phase phase;
    pid_t pid;   /* 0: no process */
    int channel; /* the master's end; -1: no process */
    int inbox;   /* other workers send messages to it here; -1 until the worker has made one */
    int broken_listener; /* the descriptor that it has reported as shut down; -1: none */
    struct slot_id slot;
    uint64_t started_ms;
    struct timer respawn;  /* when a new process is forked */
    struct timer deadline; /* when the process is killed unless it has come further */
    enum pool_kill due;    /* reason of the deadline, while there is one */
    enum pool_kill killed; /* reason of the fatal signal that was sent */
    struct pool_watch watch;
    unsigned failures; /* early deaths in a row, which make the wait for the next one longer */
    unsigned fills;    /* how many processes it has had */
};

/* The legal steps are in phases.c. From REPLACED on a generation is ending: its workers are not
 * replaced. */
enum generation_phase {
    GENERATION_STARTING,  /* workers set themselves up; no trace would be left of it */
    GENERATION_COMMITTED, /* took the listeners over; workers begin to accept */
    GENERATION_SERVING,
    GENERATION_REPLACED, /* still accepts, but the listeners are the successor's: no respawn */
    GENERATION_DRAINING, /* workers were told to finish their sessions and end; no respawn */
    GENERATION_CLOSING,  /* workers were told to end at once; no respawn */
};

struct generation {
    TAILQ_ENTRY(generation) link;
    struct pool *pool;
    unsigned number; /* from 1 */
    enum generation_phase phase;
    struct cycle *cycle;
    struct descriptors
        opened; /* by modules while this or an earlier configuration was read: kept by workers */
    struct timer release;  /* how long a reload waits for the workers to release listeners */
    struct timer watch;    /* when the watchdog looks again */
    int64_t since_ms;      /* start, since the epoch */
    unsigned mutex_damage; /* how often its workers have found the accept mutex damaged */
    bool without_mutex;    /* goes on without the accept mutex */
    unsigned process_n;    /* workers that are not empty */
    unsigned worker_n;
    struct pool_worker workers[];
};

TAILQ_HEAD(generations, generation);

/* A worker's request for the inbox of another; private to messages.c. */
struct inbox_request;
STAILQ_HEAD(inbox_requests, inbox_request);

/* Operations by which the pool tells its owner what happens. `serves` may call pool_end(), `reaped`
 * may start a generation; no other may start or end one. */
struct pool_ops {
    /* The starting generation has the listeners now; going back is not possible any more. */
    void (*committed)(void *host);
    /* The starting generation's workers all accept: pool->serving is another one now. */
    void (*serves)(void *host, bool first);
    /* The starting generation was taken back, after an emerg line or because the daemon ends; its
     * workers are being ended. */
    void (*failed)(void *host);
    /* A worker has released listeners that another master process may serve too. */
    void (*rescan)(void *host);
    /* Whether another master process listens on this socket: then its path stays. */
    bool (*is_shared)(void *host, const struct listener *listener);
    /* In a new child, before it becomes a worker of this configuration. */
    void (*in_child)(void *host, const struct cycle *cycle);
    /* A child has exited, and keeps its pid until this returns. */
    void (*exited)(void *host);
    /* A child that is none of the pool's workers was reaped. */
    void (*reaped)(void *host, pid_t pid, int status);
};

struct pool {
    const struct pool_ops *ops;
    void *host; /* given to the operations */
    struct log *log;
    const struct clock *clock;
    struct timers *timers;
    struct shared *shared;
    struct adopted *adopted;        /* listening sockets that the process was started with */
    struct zones *adopted_zones;    /* the first generation takes these over */
    struct log_limit log_limit;     /* limit of `log`, as the serving generation has it */
    struct timer log_due;           /* when held-back lines are written */
    struct timer log_repair;        /* until then no broken log is repaired again */
    struct generations generations; /* those that end have a process each, but for `serving` */
    unsigned generation_n;          /* ever made */
    struct generation
        *serving; /* generation whose configuration is in force; NULL until the first serves */
    struct generation *starting; /* STARTING or COMMITTED; NULL: none */
    struct inbox_requests requests;
    struct timer mend;            /* when reported listeners are looked at */
    uint64_t mended_ms;           /* the latest look */
    uint64_t deaths[POOL_DEATHS]; /* workers that have ended, by cause */
    bool ending;                  /* the daemon ends: no worker is replaced, no generation starts */
};

struct pool_options {
    const struct pool_ops *ops;
    void *host;
    struct log *log;
    const struct clock *clock;
    struct timers *timers;
    struct shared *shared;
    struct adopted *adopted;
    struct zones *adopted_zones;
};

#define GENERATION_FOREACH_WORKER(w, generation)                                                   \
    for ((w) = (generation)->workers; (w) < (generation)->workers + (generation)->worker_n; (w)++)

/* The pool (pool.c) */

void pool_init(struct pool *pool, const struct pool_options *options);
/* Destroys all generations; no worker is left. */
void pool_done(struct pool *pool);
/* Asserts what must hold of the whole structure between two wake-ups of the master (check.c). */
void pool_check(const struct pool *pool);

bool pool_has_workers(const struct pool *pool);
/* Processes of generations that drain or close, or of all others but the one that starts. */
unsigned pool_count_workers(const struct pool *pool, bool draining);
/* Whether a generation may start now: none is starting, max_generations allows it, and no
 * draining worker holds listeners, which would be in the way of the same ones. It is waited for
 * only as long as its generation's timer runs: a worker that is stuck may hold none that matter. */
bool pool_may_start(const struct pool *pool);

/* Tells the serving generation's workers to drain, and none to replace them. */
void pool_drain(struct pool *pool);
/* Undoes pool_drain(): workers that have gone are replaced. Returns false where some are left with
 * sessions, so that only a new generation makes all of them accept. */
bool pool_revive(struct pool *pool);
/* The daemon ends: a committed generation becomes the serving one, any other start is taken back
 * (generation.c). */
void pool_conclude_start(struct pool *pool);
/* ... and then all workers end, after their sessions or at once. */
void pool_end(struct pool *pool, bool gracefully);
/* Closes the serving generation's listeners, and unlinks the paths that nobody else listens on. */
void pool_close_listeners(struct pool *pool);

/* Phases (phases.c) */

void pool_set_generation_phase(struct generation *generation, enum generation_phase phase);
void pool_worker_set_phase(struct pool_worker *worker, enum pool_worker_phase phase);

/* Destroying (destroy.c) */

/* Destroys a generation that has no process left, with its configuration. */
void pool_destroy_generation(struct generation *generation);

/* Starting (start.c) */

/* Opens listeners and zones of this configuration, taking over those in force, and forks its
 * workers. Takes `cycle` and `opened` (the descriptors that modules opened while it was read).
 * Returns -1 after an emerg line: nothing is left of it, but for workers that were forked already
 * and are being ended. What comes later of it the operations tell. */
int pool_start_generation(struct pool *pool, struct cycle *cycle, struct descriptors *opened);

/* Generations (generation.c) */

/* Takes the starting generation back after an emerg line. */
void generation_withdraw(struct generation *generation, const char *why);
/* Takes the starting generation back as generation_withdraw() does, and calls ops->failed. */
void generation_abort(struct generation *generation, const char *why);
/* A worker of the starting generation has come further: the generation does when all have. */
void generation_advance(struct generation *generation);
/* Tells its workers to finish their sessions. */
void generation_drain(struct generation *generation);
/* Tells its workers to end at once; those that do not are killed soon. */
void generation_close(struct generation *generation);

/* Workers: forking (spawn.c), exits (exit.c), one record (worker.c) */

/* Forks a process; -1 after an alert line. */
int pool_spawn(struct pool_worker *worker);
/* Returns the record of the worker that this process is, or NULL. */
struct pool_worker *pool_find_worker(const struct pool *pool, pid_t pid);
/* Reaps all children that have exited, and replaces workers as their exit deserves. */
void pool_reap(struct pool *pool);
/* Gives up the record's process, which is gone: channel, inbox, deadline. */
void pool_worker_clear(struct pool_worker *worker);
/* Schedules a new process after this time. */
void pool_worker_respawn_in(struct pool_worker *worker, uint64_t ms);

/* Lets the worker accept, and gives it worker_start_timeout to do so. */
void pool_worker_arm(struct pool_worker *worker);
/* Tells the worker to drain, and gives it worker_shutdown_timeout and a second to do so. */
void pool_worker_drain(struct pool_worker *worker);
/* Tells the worker to end at once, which it has two seconds for. */
void pool_worker_close(struct pool_worker *worker);
/* `fd` (or -1) stays the caller's. */
void pool_worker_send(
    struct pool_worker *worker, enum channel_message_kind kind, uint32_t argument, int fd);

/* Deadlines (deadline.c): a worker has one at most, and is killed when it passes (start.c). */

/* Sets a deadline after this time, unless it already has an earlier deadline. */
void pool_deadline_set(struct pool_worker *worker, enum pool_kill why, uint64_t ms);
/* Sets the deadline that worker_shutdown_timeout gives a worker that drains. */
void pool_deadline_set_drain(struct pool_worker *worker);
/* The worker has come further in its start, whose deadline is dropped; any other stays. */
void pool_deadline_drop_start(struct pool_worker *worker);

/* Messages (messages.c) */

/* Receives and handles all that workers have sent. */
void pool_receive_messages(struct pool *pool);
/* Makes every accepting worker but `except` (or NULL) rescan its listeners once. */
void pool_rescan(struct pool *pool, const struct pool_worker *except);

/* Mending (mend.c) */

/* Makes listeners that were shut down listen again. */
void pool_mend_listeners(struct pool *pool);
/* A worker says that a listener, which has this descriptor, was shut down: we look soon. */
void pool_note_broken_listener(struct pool_worker *worker, uint32_t number);
/* A worker says that the accept mutex had an owner that cannot be. */
void pool_note_damaged_mutex(struct pool_worker *worker);

/* Watchdog (watchdog.c) */

/* Arms the timer for the next look at the workers, in half of worker_watchdog, which is not off. */
void pool_watchdog_start(struct generation *generation);

/* Logs (logs.c) */

/* Opens the log files of all generations again, and passes them to their workers. */
void pool_reopen_logs(struct pool *pool);
/* A worker says that a log of its generation has lost its receiver. */
void pool_note_broken_log(struct generation *generation, unsigned log);
/* Repairs broken logs, writes what was held back, and arms the timer for what is due later. Due
 * after each wake-up in which the log has been broken or has held lines back. */
void pool_tend_logs(struct pool *pool);

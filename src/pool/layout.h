/* SPDX-License-Identifier: BSD-2-Clause */
/* Structs of the pool: generations of workers, with a single serving generation. Written by pool/
 * alone. */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "channel/channel.h"
#include "configuration/logs.h"
#include "event/timer.h"
#include "net/adopted.h"
#include "pidfile/worker_list.h"
#include "process/death.h"
#include "process/descriptors.h"
#include "process/heritage.h"
#include "settings/cycle.h"
#include "shm/shared.h"
#include "tls/file_watch.h"

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

/* Why the master kills a worker; exit.c has a name and a sentence for each. */
enum pool_kill {
    POOL_KILL_NONE,
    POOL_KILL_START_LATE,   /* neither ready nor accepting within worker_start_timeout */
    POOL_KILL_STUCK,        /* worker_watchdog: SIGABRT, and later SIGKILL */
    POOL_KILL_DRAIN_LATE,   /* told to drain, and there a second after worker_shutdown_timeout */
    POOL_KILL_CLOSE_LATE,   /* told to end at once */
    POOL_KILL_CHANNEL_LOST, /* closed the channel without ending */
    POOL_KILL_CHANNEL,      /* broke a rule of the channel (worker.c) */
    POOL_KILLS,
};

/* A kill (POOL_KILL_NONE: a requested end), or any cause of process/death.h. */
enum pool_death {
    POOL_DEATH_SIGNAL = POOL_KILLS - 1 + DEATH_SIGNAL,
    POOL_DEATH_EXIT = POOL_KILLS - 1 + DEATH_EXIT,
    POOL_DEATH_WAIT = POOL_KILLS - 1 + DEATH_WAIT,
    POOL_DEATH_START = POOL_KILLS - 1 + DEATH_START,
    POOL_DEATHS,
};

#define POOL_WANTED_MAX 256 /* unanswered requests of a worker */
#define POOL_GONE_MAX 1024  /* unread ends of incarnations of a worker */
#define POOL_ASKS_MAX 64    /* simultaneous requests to the other master process */

/* Messages with an argument, kept until the worker's channel has room. */
struct pool_outbox {
    unsigned log_n;   /* number of reopened logs to send, from the end */
    int inbox;        /* the worker's end of its inbox, or -1 */
    int link;         /* the process's end of the link of a worker and its keeper, or -1 */
    bool file_wanted; /* file number `file` of the configuration, by a keeper */
    uint32_t file;
    uint32_t gone;        /* how many of pool->gone_n incarnations the worker was told of */
    bool others_wanted;   /* a request to the other master process is due */
    bool others_asked;    /* the question was sent, and has no answer */
    unsigned others_left; /* number of pool->others to send, from the first */
    unsigned wanted_n;    /* incarnations whose inboxes it has asked for */
    uint32_t wanted[POOL_WANTED_MAX];
};

/* Findings of the watchdog about one worker. */
struct pool_watch {
    uint64_t heartbeat; /* the value that was read last */
    uint64_t since_ms;  /* when that value was read first; 0: never */
    unsigned repeats;   /* how often it was read again, unchanged */
};

/* The master's record of one of worker_processes, or of a helper; reused after an exit. */
struct pool_worker {
    struct generation *generation;
    unsigned index; /* among the generation's workers */
    enum heritage_task task;
    enum pool_worker_phase phase;
    pid_t pid;                  /* 0: no process */
    int handle;                 /* process handle of an orphan (exit.c), or -1 */
    struct channel_end channel; /* the master's end; closed: no process */
    struct output output;       /* its standard error */
    int inbox;                  /* receives messages of workers; -1 until the first request */
    bool known;                 /* another worker has asked for its inbox */
    uint32_t link_n;            /* links that the process was given */
    bool asks_others;           /* the worker has asked for the other master process's workers */
    struct pool_outbox outbox;
    bool accept_asked;   /* MESSAGE_ACCEPT was sent, or waits, and was not replied to */
    int broken_listener; /* descriptor of a reported broken listener; -1: none */
    struct slot_id slot;
    uint64_t started_ms;
    struct timer respawn;  /* when a new process is forked */
    struct timer deadline; /* when the process is killed */
    enum pool_kill due;    /* reason of the deadline */
    bool drains; /* was told to, or says so: from then on it has worker_shutdown_timeout */
    enum pool_kill killed; /* reason of the fatal signal */
    struct pool_watch watch;
    struct log_quota lines;    /* about the processes of this record */
    struct token_bucket dials; /* new connections of logs for these processes */
    unsigned failures;         /* consecutive early deaths, lengthening the next wait */
    unsigned fills;            /* how many processes it has had */
    bool crashed;              /* since the commit of the generation */
};

/* The legal steps are in generation.c. From REPLACED on no worker is forked. */
enum generation_phase {
    GENERATION_STARTING,  /* workers set themselves up; no trace would be left of it */
    GENERATION_COMMITTED, /* took the listeners over; workers begin to accept */
    GENERATION_SERVING,
    GENERATION_REPLACED, /* still accepts, but the listeners are the successor's */
    GENERATION_DRAINING, /* workers were told to finish their sessions and end */
    GENERATION_CLOSING,  /* workers were told to end at once */
};

struct generation {
    TAILQ_ENTRY(generation) link;
    struct pool *pool;
    unsigned number; /* from 1 */
    enum generation_phase phase;
    struct cycle *cycle;
    struct descriptors opened;   /* by modules reading this or an earlier configuration */
    struct bells bells;          /* by which its workers wake each other */
    struct timer release;        /* how long a reload waits for the workers to release listeners */
    struct timer watch;          /* when the watchdog looks again */
    struct timer calm;           /* when `crashing` may be over */
    struct tls_file_watch files; /* for keepers; closed without any */
    int pairs;                   /* memory that keepers alone map (keeper/pair_store.h), or -1 */
    int64_t since_ms;            /* start, since the epoch */
    unsigned mutex_damage;       /* reports of a damaged accept mutex */
    bool without_mutex;          /* goes on without the accept mutex */
    bool crashing;      /* workers wait after crashes, and none serves since (transaction.c) */
    int last_death;     /* waitpid() status of the latest death */
    unsigned process_n; /* workers that are not empty */
    /* all workers; workers for clients, which come first; their keepers, if any, which come next */
    unsigned worker_n, serve_n, keeper_n;
    struct pool_worker workers[];
};

TAILQ_HEAD(generations, generation);

/* The level that an operator has set for all error logs, until the master's end (log_level.c). */
struct pool_log_level {
    uint32_t override; /* of base/log.h; 0: none is set */
    int64_t until_ms;  /* end, since the epoch; 0: none */
    struct timer end;
};

/* A requested rescan (listeners.c). */
struct pool_rescan {
    struct timer due;
    bool listeners, names; /* parts that are to be looked at */
    uint64_t last_ms;      /* the latest one */
    struct slot_id except; /* the only asking worker; serial 0: all are to rescan */
    bool host;             /* the host is told as well */
};

/* Time after the commit in which the new workers must not all crash. */
#define POOL_PROBATION_MS 1000

/* The latest commit, while the generation may still have to give way (transaction.c). */
struct pool_probation {
    struct generation *before; /* kept even without processes; NULL: no probation */
    struct timer due;          /* the end of the probation of the new workers */
    bool goes_back;            /* the configuration before is started again, or will be */
};

#define POOL_ASK_ALL UINT32_MAX /* no incarnation */

/* Operations of the owner. `serves` may call pool_end(), `exited` may start a generation; no
 * other operation may start or end a generation. */
struct pool_ops {
    /* The starting generation has the listeners now; going back is not possible any more. */
    void (*committed)(void *host);
    /* The workers of the starting generation all accept: pool->serving has changed. */
    void (*serves)(void *host, bool first);
    /* The serving generation has passed probation, and the generation before is given up. */
    void (*proved)(void *host);
    /* Every worker has crashed on probation, after an emerg line: the generation serves, and the
     * configuration before starts again, until `serves` or `failed`. */
    void (*goes_back)(void *host);
    /* The starting generation was taken back, after an emerg line or by the daemon's end. */
    void (*failed)(void *host);
    /* A worker has released listeners, perhaps shared with another master process. */
    void (*rescan)(void *host);
    /* Whether another master process listens on the socket, and keeps the path. */
    bool (*is_shared)(void *host, const struct listener *listener);
    /* Whether the new master process of an upgrade repairs this socket; NULL: whether it has any
     * of our sockets, and binds lost paths. */
    bool (*is_handed_over)(void *host, const struct listener *listener);
    /* Asks the other master process for all workers (POOL_ASK_ALL), or for an inbox for the worker
     * `asker`. Answered by pool_others_came() and pool_others_inbox_came(). -1 with errno: EAGAIN
     * where it does not read now, else without a process to exchange messages with. */
    int (*ask_inbox)(void *host, uint32_t incarnation, uint32_t asker);
    /* A worker has ended, known to workers of the other master process. */
    void (*worker_gone)(void *host, uint32_t incarnation);
    /* The report of a keeper has come, of untrusted text; NULL: there is none. */
    void (*reported)(void *host, const char *text, size_t n);
    /* In a new child, before the worker's start. */
    void (*in_child)(void *host, const struct cycle *cycle);
    /* A child has exited: `other`, for the host to reap, or 0: a worker, not reaped yet. */
    void (*exited)(void *host, pid_t other);
};

struct pool {
    const struct pool_ops *ops;
    void *host; /* given to the operations */
    struct log *log;
    const struct clock *clock;
    struct timers *timers;
    struct shared *shared;
    const struct worker_list *list; /* lists each worker that is forked */
    struct adopted *adopted;        /* inherited listening sockets */
    int tickets; /* memory that keepers alone map (keeper/ticket_memory.h); -1: none yet */
    struct pool_worker *reporter; /* the keeper that writes a report (report.c); NULL: none does */
    int report;                   /* its memory */
    struct zones *adopted_zones;  /* the first generation takes these over */
    struct log_limit log_limit;   /* limit of `log` in the serving generation */
    struct timer log_due;         /* when held-back lines are written */
    struct timer log_repair;      /* until then no broken log is repaired again */
    struct timer log_flush;       /* until then no waiting lines are sent */
    struct pool_log_level log_level;
    /* a generation that ends has a process, or is `serving`, or kept */
    struct generations generations;
    unsigned generation_n;        /* ever made */
    struct generation *serving;   /* in force; NULL before the first serves */
    struct generation *starting;  /* STARTING or COMMITTED; NULL: none */
    uint32_t gone[POOL_GONE_MAX]; /* latest ended incarnations that other workers know */
    uint32_t gone_n;              /* total; modulo POOL_GONE_MAX the next index */
    uint32_t others[SLOT_MAX];    /* incarnations of the other master process, latest list */
    unsigned others_n;
    unsigned asks_n;      /* unanswered requests for inboxes */
    bool others_met;      /* workers may know others */
    struct timer orphans; /* poll timer for exits of orphans */
    struct pool_rescan rescan;
    struct pool_probation probation;
    struct timer mend;                   /* when listeners are looked at */
    uint64_t mended_ms;                  /* the latest look */
    struct timer restore;                /* when options of the next listeners are put back */
    struct listener_system untouched;    /* options to restore, read at the start */
    unsigned restore_at, restore_passes; /* the next one, and how often the last is to be reached */
    uint64_t deaths[POOL_DEATHS];        /* workers that have ended, by cause */
    bool ending; /* the daemon ends: no worker is replaced, no generation starts */
};

#define GENERATION_FOREACH_WORKER(w, generation)                                                   \
    for ((w) = (generation)->workers; (w) < (generation)->workers + (generation)->worker_n; (w)++)
/* Visits workers for clients. */
#define GENERATION_FOREACH_SERVING(w, generation)                                                  \
    for ((w) = (generation)->workers; (w) < (generation)->workers + (generation)->serve_n; (w)++)
/* Visits workers of all generations, or only workers for clients. */
#define POOL_FOREACH_WORKER(w, pool)                                                               \
    for (struct generation *g_ = TAILQ_FIRST(&(pool)->generations); g_; g_ = TAILQ_NEXT(g_, link)) \
        GENERATION_FOREACH_WORKER ((w), g_)
#define POOL_FOREACH_SERVING(w, pool)                                                              \
    for (struct generation *g_ = TAILQ_FIRST(&(pool)->generations); g_; g_ = TAILQ_NEXT(g_, link)) \
        GENERATION_FOREACH_SERVING ((w), g_)

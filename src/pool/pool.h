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
#include "process/bells.h"
#include "process/channel_end.h"
#include "process/death.h"
#include "process/descriptors.h"
#include "process/heritage.h"
#include "process/log_quota.h"
#include "process/output.h"
#include "process/worker_list.h"
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

/* Why the master kills a worker; exit.c has a name and a sentence for each. */
enum pool_kill {
    POOL_KILL_NONE,
    POOL_KILL_START_LATE,   /* neither ready nor accepting within worker_start_timeout */
    POOL_KILL_STUCK,        /* worker_watchdog: SIGABRT, and later SIGKILL */
    POOL_KILL_DRAIN_LATE,   /* told to drain, and there a second after worker_shutdown_timeout */
    POOL_KILL_CLOSE_LATE,   /* told to end at once */
    POOL_KILL_CHANNEL_LOST, /* closed its end of the channel, and lives */
    POOL_KILL_CHANNEL,      /* broke a rule of the channel (rules.c) */
    POOL_KILLS,
};

/* Why a worker has ended: what it was killed for (POOL_KILL_NONE: nothing, it was told to end), or
 * any other cause of a process's death. */
enum pool_death {
    POOL_DEATH_SIGNAL = POOL_KILLS - 1 + DEATH_SIGNAL,
    POOL_DEATH_EXIT = POOL_KILLS - 1 + DEATH_EXIT,
    POOL_DEATH_WAIT = POOL_KILLS - 1 + DEATH_WAIT,
    POOL_DEATH_START = POOL_KILLS - 1 + DEATH_START,
    POOL_DEATHS,
};

#define POOL_WANTED_MAX 256 /* requests of a worker that does not read the replies */
#define POOL_GONE_MAX 1024  /* incarnations that have ended, for a worker that does not read */
#define POOL_ASKS_MAX 64    /* inboxes that the other master process is asked for at once */

/* Messages with an argument that wait until the worker's channel has room. */
struct pool_outbox {
    unsigned log_n;       /* how many of its logs, the last ones, were reopened */
    int inbox;            /* the worker's end of its inbox, or -1 */
    uint32_t gone;        /* how many of pool->gone_n incarnations it was told of */
    bool others_wanted;   /* the other master process is to be asked for its workers */
    bool others_asked;    /* the question was sent, and has no answer */
    unsigned others_left; /* how many of pool->others are to be sent, the first ones */
    unsigned wanted_n;    /* incarnations whose inboxes it has asked for */
    uint32_t wanted[POOL_WANTED_MAX];
};

/* Findings of the watchdog about one worker. */
struct pool_watch {
    uint64_t heartbeat; /* the value that was read last */
    uint64_t since_ms;  /* when that value was read first; 0: never */
    unsigned repeats;   /* how often it was read again, unchanged */
};

/* The master's record of one of worker_processes, or of a helper; filled again when its process has
 * exited. */
struct pool_worker {
    struct generation *generation;
    unsigned index; /* among the generation's workers */
    enum heritage_task task;
    enum pool_worker_phase phase;
    pid_t pid;  /* 0: no process */
    int handle; /* a handle of a worker that is left to another process (orphans.c), or -1 */
    struct channel_end channel; /* the master's end; closed: no process */
    struct output output;       /* its standard error */
    int inbox;        /* other workers send messages to it here; -1 until one of them has asked */
    bool known;       /* another worker has asked for its inbox */
    bool asks_others; /* the worker has asked for the other master process's workers */
    struct pool_outbox outbox;
    bool accept_asked;   /* MESSAGE_ACCEPT was sent, or waits, and was not replied to */
    int broken_listener; /* the descriptor that it has reported as shut down; -1: none */
    struct slot_id slot;
    uint64_t started_ms;
    struct timer respawn;  /* when a new process is forked */
    struct timer deadline; /* when the process is killed unless it has come further */
    enum pool_kill due;    /* reason of the deadline, while there is one */
    bool drains; /* was told to, or says so: from then on it has worker_shutdown_timeout */
    enum pool_kill killed; /* reason of the fatal signal that was sent */
    struct pool_watch watch;
    struct log_quota lines; /* about it, and those before it in its place */
    unsigned failures;      /* early deaths in a row, which make the wait for the next one longer */
    unsigned fills;         /* how many processes it has had */
    bool crashed;           /* a process of it has, since the generation's commit */
};

/* The legal steps are in phases.c. From REPLACED on workers of a generation are not replaced. */
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
    struct bells bells;         /* by which its workers wake each other */
    struct timer release;       /* how long a reload waits for the workers to release listeners */
    struct timer watch;         /* when the watchdog looks again */
    struct timer calm;          /* when `crashing` may be over */
    int64_t since_ms;           /* start, since the epoch */
    unsigned mutex_damage;      /* how often its workers have found the accept mutex damaged */
    bool without_mutex;         /* goes on without the accept mutex */
    bool crashing;              /* workers wait after crashes, and none serves since (backoff.c) */
    int last_death;             /* status of waitpid() of the worker that has died last */
    unsigned process_n;         /* workers that are not empty */
    unsigned worker_n, serve_n; /* with helpers, which come last, and without them */
    struct pool_worker workers[];
};

TAILQ_HEAD(generations, generation);

/* A rescan that somebody has asked for (rescan.c). */
struct pool_rescan {
    struct timer due;
    bool listeners, names; /* parts that are to be looked at */
    uint64_t last_ms;      /* the latest one */
    struct slot_id except; /* the only worker that has asked; serial 0: all are to rescan */
    bool host;             /* the host is told as well */
};

/* Time after the commit in which the new workers must not all crash. */
#define POOL_PROBATION_MS 1000

/* The latest commit, while its generation may still have to give way (probation.c). */
struct pool_probation {
    struct generation *before; /* kept although it may have no process; NULL: no probation */
    struct timer due;          /* the end of the time that the new workers have to crash in */
    bool goes_back;            /* the configuration before is started again, or will be */
};

enum pool_asked {
    POOL_ASKED,
    POOL_ASK_LATER,  /* the other process does not read now */
    POOL_ASK_NOBODY, /* no other process, or none that we understand */
};

/* Operations by which the pool tells its owner what happens. `serves` may call pool_end(), `exited`
 * may start a generation; no other may start or end one. */
struct pool_ops {
    /* The starting generation has the listeners now; going back is not possible any more. */
    void (*committed)(void *host);
    /* The starting generation's workers all accept: pool->serving is another one now. */
    void (*serves)(void *host, bool first);
    /* The generation that serves has survived its first second: the one before is given up. */
    void (*proved)(void *host);
    /* The workers of the generation have crashed instead, each one, after an emerg line: it is the
     * one that serves now, and the configuration before is started again, which `serves` or
     * `failed` end. */
    void (*goes_back)(void *host);
    /* The starting generation was taken back, after an emerg line or because the daemon ends; its
     * workers are being ended. */
    void (*failed)(void *host);
    /* A worker has released listeners that another master process may serve too. */
    void (*rescan)(void *host);
    /* Whether another master process listens on this socket: then its path stays. */
    bool (*is_shared)(void *host, const struct listener *listener);
    /* Whether another master process mends this socket, which ours has handed over to it; NULL:
     * whether it serves on any, and binds lost paths again. */
    bool (*is_handed_over)(void *host, const struct listener *listener);
    /* Asks the other master process of an upgrade for its workers, or for the inbox of one of them,
     * which is for the worker `asker`, both incarnations: pool_others_came() and
     * pool_others_inbox_came() have the answers. */
    enum pool_asked (*ask_others)(void *host);
    enum pool_asked (*ask_inbox)(void *host, uint32_t incarnation, uint32_t asker);
    /* A worker has gone of which others know. */
    void (*worker_gone)(void *host, uint32_t incarnation);
    /* In a new child, before it becomes a worker of this configuration. */
    void (*in_child)(void *host, const struct cycle *cycle);
    /* A child has exited: `other`, which is none of the pool's workers and which the host reaps, or
     * one of them (0), which keeps its pid until this returns. */
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
    struct adopted *adopted;        /* listening sockets that the process was started with */
    struct zones *adopted_zones;    /* the first generation takes these over */
    struct log_limit log_limit;     /* limit of `log`, as the serving generation has it */
    struct timer log_due;           /* when held-back lines are written */
    struct timer log_repair;        /* until then no broken log is repaired again */
    /* a generation that ends has a process, or is `serving`, or kept */
    struct generations generations;
    unsigned generation_n; /* ever made */
    struct generation
        *serving; /* generation whose configuration is in force; NULL until the first serves */
    struct generation *starting;  /* STARTING or COMMITTED; NULL: none */
    uint32_t gone[POOL_GONE_MAX]; /* latest incarnations that have ended and were known to others */
    uint32_t gone_n;              /* ever; the next one's place is the remainder */
    uint32_t others[SLOT_MAX]; /* incarnations of the other master process, as it told them last */
    unsigned others_n;
    unsigned asks_n;      /* inboxes that it was asked for, and has not answered */
    bool others_met;      /* workers may know others */
    struct timer orphans; /* when workers that are not our children are looked at */
    struct pool_rescan rescan;
    struct pool_probation probation;
    struct timer mend;                   /* when listeners are looked at */
    uint64_t mended_ms;                  /* the latest look */
    struct timer restore;                /* when options of the next listeners are put back */
    struct listener_system untouched;    /* what restoring compares with, read at the start */
    unsigned restore_at, restore_passes; /* the next one, and how often the last is to be reached */
    uint64_t deaths[POOL_DEATHS];        /* workers that have ended, by cause */
    bool ending; /* the daemon ends: no worker is replaced, no generation starts */
};

struct pool_options {
    const struct pool_ops *ops;
    void *host;
    struct log *log;
    const struct clock *clock;
    struct timers *timers;
    struct shared *shared;
    const struct worker_list *list; /* lists each worker that is forked */
    struct adopted *adopted;
    struct zones *adopted_zones;
};

#define GENERATION_FOREACH_WORKER(w, generation)                                                   \
    for ((w) = (generation)->workers; (w) < (generation)->workers + (generation)->worker_n; (w)++)
/* ... those that serve clients. */
#define GENERATION_FOREACH_SERVING(w, generation)                                                  \
    for ((w) = (generation)->workers; (w) < (generation)->workers + (generation)->serve_n; (w)++)

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
/* Writes what a start waits for (waits.c); returns for how many ms at most, 0: nobody knows. */
uint64_t pool_describe_wait(const struct pool *pool, char *text, size_t size);

/* Tells the serving generation's workers to drain; none is replaced. */
void pool_drain(struct pool *pool);
/* Undoes pool_drain(): a new generation serves with the same configuration and listeners, unless
 * one that starts has them already (start.c). */
void pool_revive(struct pool *pool);
/* Returns a generation of which a draining worker may hold listeners, each for a bounded time; or
 * NULL. */
const struct generation *pool_find_holder(const struct pool *pool);
/* A graceful end is taken back, so that a generation may start, or goes on again. */
void pool_set_ending(struct pool *pool, bool ending);
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

/* Starts the configuration of an ending generation; returns as pool_start_generation() does. */
int pool_restart_generation(struct pool *pool, const struct generation *before);

/* Probation (probation.c) */

/* The time has passed; a generation that does not serve yet has as long as it takes. */
void pool_probation_expired(struct loop *loop, struct timer *timer);
/* Ends it, if there is any: the generation before is not needed any more. */
void pool_probation_end(struct pool *pool);
/* Whether no worker of the generation that serves has crashed since its commit. */
bool pool_probation_is_calm(const struct pool *pool);
/* Whether the configuration before is to start again, and has not begun to. */
bool pool_probation_awaits_start(const struct pool *pool);
/* A worker has crashed whose generation has committed (fall_back.c). */
void pool_note_crash(struct pool_worker *worker);
/* Starts the configuration before again, if it is to be, as soon as no draining worker holds
 * listeners that are in the way; to be called in each wake-up of the master. */
void pool_fall_back_advance(struct pool *pool);

/* Back-off (backoff.c) */

/* A worker waits for its replacement. */
void pool_backoff_note(struct generation *generation);
/* A worker of a generation whose workers were all waiting was forked. */
void pool_backoff_watch(struct generation *generation);
/* The generation has a worker that serves, or was replaced. */
void pool_backoff_end(struct generation *generation);

/* Generations (generation.c) */

/* All workers of the starting generation accept, or its own will not come to: it serves, and the
 * generation before drains. */
void generation_serve(struct generation *generation);

/* Takes the starting generation back after an emerg line; generation_failed() is to follow. */
void generation_withdraw(struct generation *generation, const char *why);
/* Calls generation_withdraw() and generation_failed(). */
void generation_abort(struct generation *generation, const char *why);
/* A start has failed: generations beside the one that serves end, and ops->failed is called. */
void generation_failed(struct pool *pool);
/* Whether a worker of the generation accepts clients. */
bool generation_accepts(const struct generation *generation);
/* Drains what was replaced, once the generation that serves accepts, and will not give way. */
void generation_drain_replaced(struct pool *pool);
/* A worker of the starting generation has come further: the generation does when all have. */
void generation_advance(struct generation *generation);
/* Tells its workers to finish their sessions. */
void generation_drain(struct generation *generation);
/* Tells its workers to end at once; those that do not are killed soon. */
void generation_close(struct generation *generation);
/* Bounds the generations that drain, their worker processes and the slots of these. */
void generation_bound(struct pool *pool);

/* Workers: spawn.c, exit.c, worker.c */

/* Forks a process; -1 after an alert line. */
int pool_spawn(struct pool_worker *worker);
/* Returns its name in log lines. */
static inline const char *pool_worker_title(const struct pool_worker *worker)
{
    return worker->task == TASK_ASK ? "resolver process" : "worker process";
}
/* Names of causes in the status; NULL: not counted there. */
extern const char *const pool_death_names[POOL_DEATHS];
/* Returns the record of the worker that is this process, or this incarnation, which may be
 * invented; or NULL. */
struct pool_worker *pool_find_worker(const struct pool *pool, pid_t pid);
struct pool_worker *pool_worker_of_incarnation(const struct pool *pool, uint32_t incarnation);
/* Reaps all children that have exited, and replaces workers as their exit deserves. */
void pool_reap(struct pool *pool);
/* Schedules a new process after this time. */
void pool_worker_respawn_in(struct pool_worker *worker, uint64_t ms);

enum pool_order {
    POOL_ORDER_ACCEPT, /* to accept clients, within worker_start_timeout */
    POOL_ORDER_DRAIN,  /* to finish its sessions, in worker_shutdown_timeout and a second */
    POOL_ORDER_CLOSE,  /* to end at once, which it has two seconds for */
};

/* Tells the worker what to do, and sets the deadline. */
void pool_worker_order(struct pool_worker *worker, enum pool_order order);

/* Workers that are left to a child of the master's (orphans.c) */

/* Makes it possible that a child takes this pool over, which ends; -1 with errno. To be undone, if
 * there is no child. */
int pool_leave_begin(struct pool *pool);
void pool_leave_undo(struct pool *pool);
/* In the child: the workers' ends are looked for from now on, and their messages wake us; -1 with
 * errno if some do not. */
int pool_take_over(struct pool *pool);
/* Does what there is to do about a worker that has ended, and that is not our child (exit.c). */
void pool_bury_orphan(struct pool_worker *worker);

/* Deadlines (deadline.c): a worker has one at most, and is killed when it passes (start.c). */

/* Sets a deadline for this reason, unless the worker has an earlier one, the reason's time is
 * unlimited, or it is that of the start and there is any. POOL_KILL_NONE: the worker has come
 * further in its start, whose deadline is dropped; any other stays, and a worker that drains gets
 * that of its drain. */
void pool_deadline_set(struct pool_worker *worker, enum pool_kill why);

/* Kills a worker that has broken this rule, after an alert line (rules.c). */
void pool_worker_break_rule(struct pool_worker *worker, const char *rule);

/* Messages from workers (messages.c) */

extern const struct channel_end_ops pool_channel_ops;

/* Receives and handles some messages of each worker; when more wait, the master is woken again.
 * Kills workers that break the channel's rules. */
void pool_receive_messages(struct pool *pool);

/* Makes every accepting worker but `asker`, who wants it, rescan its listeners once, soon; then the
 * host is told as well. NULL: the host asks (rescan.c). */
void pool_rescan(struct pool *pool, const struct pool_worker *asker);
/* Tells every worker, soon, that names have new addresses. */
void pool_rescan_names(struct pool *pool);

/* Mending (mend.c) */

/* The first generation serves: reads the options of sockets that nobody has touched. */
void pool_read_untouched(struct pool *pool);
/* Makes broken listeners listen again: now; soon; soon, as a worker says that the one of a number
 * is broken; soon, with the options of all put back, as a worker that accepted has died, or after
 * a reload. */
void pool_mend_listeners(struct pool *pool);
void pool_look_at_listeners(struct pool *pool);
void pool_note_broken_listener(struct pool_worker *worker, uint32_t number);
void pool_restore_listeners(struct pool *pool);
void pool_restore_expired(struct loop *loop, struct timer *timer);
/* A worker says that the accept mutex had an owner that cannot be. */
void pool_note_damaged_mutex(struct pool_worker *worker);

/* Watchdog (watchdog.c) */

/* Looks at the workers of the generation whose timer `watch` this is, and sets the timer again. */
void pool_watchdog_expired(struct loop *loop, struct timer *timer);

/* Logs (logs.c) */

/* Opens the log files of all generations again, and passes them to their workers. */
void pool_reopen_logs(struct pool *pool);
/* A worker says that a log of its generation has lost its receiver. */
void pool_note_broken_log(struct generation *generation, unsigned log);
/* Repairs broken logs, writes what was held back, and arms the timer for what is due later. Due
 * after each wake-up in which the log has been broken or has held lines back. */
void pool_tend_logs(struct pool *pool);

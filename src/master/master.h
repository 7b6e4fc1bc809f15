/* SPDX-License-Identifier: BSD-2-Clause */
/* The master: it holds the configuration and the listening sockets, and keeps workers alive. Its
 * only sleep is sigsuspend(). */
#pragma once

#include "base/clock.h"
#include "base/log_limit.h"
#include "event/timer.h"
#include "master/endpoints.h"
#include "master/host.h"
#include "master/manager.h"
#include "master/watchdog.h"
#include "net/adopted.h"
#include "process/channel.h"
#include "process/heritage.h"
#include "process/pidfile.h"
#include "process/rehearse.h"
#include "process/signals.h"

#include <bsd/sys/queue.h>

enum fb_seat_state {
    FB_SEAT_EMPTY,
    FB_SEAT_STARTING, /* forked */
    FB_SEAT_READY,    /* set up, but for accepting */
    FB_SEAT_ARMED,    /* it accepts */
    FB_SEAT_CLOSED,   /* it holds no listener any more */
};

/* The place of one of worker_processes: filled again when its worker dies. */
struct fb_seat {
    enum fb_seat_state state;
    pid_t pid;
    int channel; /* the master's end; -1 when empty */
    int inbox;   /* others send to it here; -1 until it says so */
    struct fb_slot_id slot;
    uint64_t started_ms;
    uint64_t respawn_ms; /* when to fill it again; 0: not waiting */
    uint64_t kill_ms;    /* when it is killed if it has not come further; 0: never */
    bool late;           /* it was killed as it did not become ready */
    struct fb_watch watch;
    unsigned failures; /* in a row, which make the wait longer */
    unsigned fills;    /* how many workers it has had */
};

/* The workers of one reading of the configuration. */
struct fb_generation {
    TAILQ_ENTRY(fb_generation) link;
    unsigned number;
    struct fb_cycle *cycle;
    bool draining;         /* its workers have been told to end and are not replaced ... */
    bool closing;          /* ... at once */
    uint64_t step_back_ms; /* until when it is waited for that they let go of their listeners */
    int64_t since_ms;      /* since the epoch */
    uint64_t look_ms;      /* when its workers are looked at again */
    unsigned seat_n;
    struct fb_seat seats[];
};

struct fb_want;

/* Outcome of the latest reload. */
struct fb_result {
    bool any, ok;
    int64_t at_ms;             /* since the epoch */
    char why[DIAG_REASON_MAX]; /* why it failed */
};

struct fb_master {
    struct fb_log log;
    struct fb_log_limit log_limit;
    struct fb_clock clock; /* as of the last wake-up */
    struct fb_shared *shared;
    struct fb_inherited *inherited; /* listening sockets */
    struct fb_zones *zones;         /* to take over at the first start */
    const struct fb_cycle_options *options;
    struct timers timers;
    struct endpoints endpoints;
    int background;                          /* to be told when we serve, or -1 */
    TAILQ_HEAD(, fb_generation) generations; /* all with a worker, and `live` */
    unsigned generation_n;                   /* ever made */
    struct fb_generation *live;              /* the one that serves; NULL until the first does */
    struct fb_generation *starting;          /* the next one, until all its workers accept */
    bool committed;                          /* `starting` has taken the listeners over */
    enum { FB_MASTER_RUNS, FB_MASTER_QUITS, FB_MASTER_TERMINATES } state;
    pid_t sender; /* of the signal that is obeyed; 0: not known, or it is none */
    bool termed;  /* a SIGTERM has come */
    bool failed;  /* the first generation could not start */
    STAILQ_HEAD(fb_wants, fb_want) wants; /* inboxes that workers have asked for */
    struct fb_clock started;
    struct control control;
    struct fb_rehearsal rehearsal; /* of a reload's configuration */
    bool reloading;                /* from the reading of the configuration to the reload's end */
    struct fb_told *told;          /* what a reload has said; NULL: there was no memory */
    struct fb_result result;       /* of the latest reload */
    struct fb_manager manager;
    struct upgrade upgrade;
};

/* What a start has made ready for a master or a single process, which takes it over. */
struct fb_start {
    struct fb_cycle *cycle;                 /* loaded, with open logs */
    const struct fb_cycle_options *options; /* for reloads */
    struct fb_shared *shared;
    const struct binary *binary; /* for upgrades */
    struct fb_inheritance inheritance;
    struct fb_pidfile pidfile; /* locked; its path is allocated */
    int background;            /* to be told when we serve, or -1 */
    struct fb_log log;         /* until we serve */
};

/* Both run until they are told to end, and return the exit code. The role's signals are installed. */
int fb_master_main(struct fb_start *start);
int fb_single_main(struct fb_start *start);

/* Whether it was given, by a signal or by the control socket. */
bool fb_master_take(struct fb_master *master, enum fb_order order);

/* Reloads (reload.c) */

/* Begins the one that was asked for, if there is one. */
void fb_reload_begin(struct fb_master *master);
/* Whether that was the process that checks its configuration; then it goes on. */
bool fb_reload_reaped(struct fb_master *master, pid_t pid, int status);
void fb_reload_meet_deadline(struct fb_master *master, uint64_t *next);

/* Generations (generation.c) */

/* Opens the listeners and zones, taking over those of `live`, and forks the workers; -1 after an
 * emerg line, with the cycle destroyed and nothing left of it. */
int fb_generation_start(struct fb_master *master, struct fb_cycle *cycle);
/* A worker has become ready or armed: goes on when all have. */
void fb_generation_advance(struct fb_master *master);
/* Takes the starting generation back, after an emerg line. */
void fb_generation_abort(struct fb_master *master, const char *why);
/* The daemon ends: a starting generation that may have clients already is the live one, any other is
 * taken back. */
void fb_generation_conclude(struct fb_master *master);
/* Signals every worker of it. */
void fb_generation_signal(struct fb_master *master, struct fb_generation *generation, int number);
void fb_generation_drain(struct fb_master *master, struct fb_generation *generation);
/* Has its workers close their connections and end; who does not is killed soon. */
void fb_generation_close(struct fb_master *master, struct fb_generation *generation);
/* Whether as many are alive as max_generations allows beside one that would start. */
bool fb_generations_are_full(const struct fb_master *master);
/* Whether workers that drain still hold listeners, which would be in the way of the same ones; not for
 * ever: a worker that is stuck may have none of those that matter. Gives the time to look again. */
bool fb_generations_step_back(const struct fb_master *master, uint64_t *next);
/* Closes the logs and zones of a cycle that no worker uses, and destroys it. */
void fb_master_discard(struct fb_master *master, struct fb_cycle *cycle);
/* Destroys those that have no worker left and are not needed any more. */
void fb_generations_sweep(struct fb_master *master);

/* Workers (spawn.c, reap.c) */

/* Forks a worker into the seat; -1 after an alert line. */
int fb_seat_fill(struct fb_master *master, struct fb_generation *generation, unsigned index);
void fb_seat_clear(struct fb_seat *seat);
/* From now on it has worker_start_timeout to come further. */
void fb_seat_expect(
    const struct fb_master *master, const struct fb_generation *generation, struct fb_seat *seat);
/* Buries and reaps the dead, and decides who is replaced. */
void fb_master_reap(struct fb_master *master);
/* Takes the starting generation back if a worker of it is late. */
void fb_master_check_start(struct fb_master *master);
/* Fills the seats whose wait is over; kills who is late; sets the next SIGALRM. */
void fb_master_meet_deadlines(struct fb_master *master);

/* Messages (talk.c) */

void fb_master_listen_to_workers(struct fb_master *master);
/* Has everyone forget the life that has ended in a seat, if they can know of it. */
void fb_master_spread_death(struct fb_master *master, const struct fb_seat *seat);
/* Lets it accept. */
void fb_seat_arm(
    struct fb_master *master, const struct fb_generation *generation, struct fb_seat *seat);
void fb_seat_send(struct fb_master *master, struct fb_seat *seat, const struct fb_message *message);
void fb_seat_tell(struct fb_master *master, struct fb_seat *seat, enum fb_message_kind kind);
/* Has every worker but the one in `except` look at its listeners once. */
void fb_master_spread_look(struct fb_master *master, const struct fb_seat *except);

/* Logs (logs.c) */

/* Has the log be that of the generation which serves now. */
void fb_master_take_log(struct fb_master *master, struct fb_generation *generation);
/* Opens the logs of all generations again, and hands the files to their workers. */
void fb_master_reopen_logs(struct fb_master *master);
/* A worker has found that a log of its generation is broken. */
void fb_master_note_broken(
    struct fb_master *master, struct fb_generation *generation, unsigned log);
/* Repairs logs, and says what was held back; *next becomes the time of what is due next, if that is
 * earlier or it is 0. */
void fb_master_tend_logs(struct fb_master *master, uint64_t *next);

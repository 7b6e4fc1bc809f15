/* SPDX-License-Identifier: BSD-2-Clause */
/* A change of configuration is a transaction. Prepare: sockets are bound but do not listen, workers
 * are forked and set everything up but accept nothing; until then the whole can be taken back and
 * nobody has noticed. Commit: the sockets listen, the new workers accept, the old ones drain. */
#include "master/master.h"

#include "net/overlaps.h"
#include "process/logs.h"
#include "process/sandbox.h"
#include "systemd/fdstore.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>

/* Workers that have not ended so long after SIGINT are killed. */
#define KILL_MS 2000
/* So long the next reload waits for those that drain to let go of their listeners. */
#define STEP_BACK_MS 5000

static struct fb_generation *create(struct fb_master *master, struct fb_cycle *cycle)
{
    unsigned n = (unsigned)cycle->core.worker_processes;
    struct fb_generation *generation =
        calloc(1, sizeof(*generation) + n * sizeof(generation->seats[0]));

    if (generation == NULL) {
        fb_log(&master->log, FB_EMERG, errno, "no memory for %u workers", n);
        return NULL;
    }
    generation->cycle = cycle;
    generation->number = ++master->generation_n;
    generation->since_ms = master->clock.wall_ms;
    generation->seat_n = n;
    for (unsigned i = 0; i < n; i++)
        generation->seats[i].channel = generation->seats[i].inbox = -1;
    TAILQ_INSERT_TAIL(&master->generations, generation, link);
    return generation;
}

void fb_master_discard(struct fb_master *master, struct fb_cycle *cycle)
{
    if (master->log.targets == cycle->core.logs) { /* the first one, which could not start */
        master->log.targets = NULL;
        master->log.target_n = 0;
        fb_log_update(&master->log);
    }
    fb_logs_close(&cycle->core);
    fb_zones_close(&cycle->zones);
    fb_cycle_destroy(&cycle);
}

static void destroy(struct fb_master *master, struct fb_generation *generation)
{
    TAILQ_REMOVE(&master->generations, generation, link);
    fb_master_discard(master, generation->cycle);
    free(generation);
    malloc_trim(0); /* it lay between others, and years of reloads are to leave no trace */
}

static struct fb_listener *adopted_from(
    const struct fb_master *master, const struct fb_listener *listener)
{
    struct fb_listener *from = NULL;

    if (master->live != NULL)
        from = fb_listener_find(&master->live->cycle->stream.listeners, listener);
    return from != NULL ? from : fb_inherited_lender(master->inherited, listener);
}

static void allow_overlaps(struct fb_master *master, struct fb_cycle *cycle, bool allow)
{
    fb_overlaps_allow(&cycle->stream.listeners,
        master->live != NULL ? &master->live->cycle->stream.listeners : NULL,
        &master->inherited->lenders, allow);
}

/* Gives back what open_listeners() has opened, up to `last` (NULL: all). */
static void abandon_listeners(
    struct fb_master *master, struct fb_cycle *cycle, const struct fb_listener *last)
{
    struct fb_listener *listener;

    allow_overlaps(master, cycle, false);
    STAILQ_FOREACH (listener, &cycle->stream.listeners, link) {
        if (listener == last)
            return;
        fb_listener_abandon(listener, adopted_from(master, listener));
    }
}

static int open_listeners(struct fb_master *master, struct fb_cycle *cycle)
{
    unsigned slots = (unsigned)cycle->core.worker_processes;
    struct fb_listener *listener;

    if (master->live != NULL &&
        fb_ports_keep(cycle, &master->live->cycle->stream.listeners) == -1) {
        fb_log(&master->log, FB_EMERG, 0, "no memory for the listeners");
        return -1;
    }
    allow_overlaps(master, cycle, true);
    STAILQ_FOREACH (listener, &cycle->stream.listeners, link)
        if (fb_listener_open(listener, adopted_from(master, listener), slots, &master->log) == -1) {
            abandon_listeners(master, cycle, listener);
            return -1;
        }
    return 0;
}

static int open_zones(struct fb_master *master, struct fb_cycle *cycle)
{
    const struct fb_generation *live = master->live;
    int status = fb_zones_open(
        &cycle->zones, live == NULL ? master->zones : &live->cycle->zones, &master->log);

    fb_zones_close(master->zones); /* those of our start, the first time */
    return status;
}

int fb_generation_start(struct fb_master *master, struct fb_cycle *cycle)
{
    struct fb_generation *generation;

    fb_clock_read(&master->clock); /* reading the configuration may have taken long */
    if (fb_sandbox_prepare(cycle, &master->log) == -1 || open_listeners(master, cycle) == -1) {
        fb_master_discard(master, cycle);
        return -1;
    }
    generation = open_zones(master, cycle) == -1 ? NULL : create(master, cycle);
    if (generation == NULL) {
        abandon_listeners(master, cycle, NULL);
        fb_master_discard(master, cycle);
        return -1;
    }
    master->starting = generation;
    master->committed = false;
    for (unsigned i = 0; i < generation->seat_n; i++)
        if (fb_seat_fill(master, generation, i) == -1) {
            fb_generation_abort(master, "a worker process could not be forked");
            return -1;
        }
    return 0;
}

void fb_generation_signal(struct fb_master *master, struct fb_generation *generation, int number)
{
    for (unsigned i = 0; i < generation->seat_n; i++)
        if (generation->seats[i].pid > 0 && kill(generation->seats[i].pid, number) == -1 &&
            errno != ESRCH)
            fb_log(&master->log, FB_ALERT, errno, "kill(%d, %d) failed",
                (int)generation->seats[i].pid, number);
}

void fb_generation_drain(struct fb_master *master, struct fb_generation *generation)
{
    generation->draining = true;
    generation->step_back_ms = master->clock.mono_ms + STEP_BACK_MS;
    for (unsigned i = 0; i < generation->seat_n; i++)
        generation->seats[i].respawn_ms = 0;
    fb_generation_signal(master, generation, SIGQUIT);
}

bool fb_generations_step_back(const struct fb_master *master, uint64_t *next)
{
    const struct fb_generation *generation;
    bool any = false;

    TAILQ_FOREACH (generation, &master->generations, link) {
        bool all = true;

        for (unsigned i = 0; i < generation->seat_n; i++)
            all = all &&
                  (generation->seats[i].pid == 0 || generation->seats[i].state == FB_SEAT_CLOSED);
        if (all || generation->step_back_ms <= master->clock.mono_ms)
            continue;
        any = true;
        if (*next == 0 || generation->step_back_ms < *next)
            *next = generation->step_back_ms;
    }
    return any;
}

void fb_generation_close(struct fb_master *master, struct fb_generation *generation)
{
    uint64_t kill_ms = master->clock.mono_ms + KILL_MS;

    generation->draining = generation->closing = true;
    for (unsigned i = 0; i < generation->seat_n; i++) {
        struct fb_seat *seat = &generation->seats[i];

        seat->respawn_ms = 0;
        if (seat->kill_ms == 0 || seat->kill_ms > kill_ms)
            seat->kill_ms = kill_ms;
    }
    fb_generation_signal(master, generation, SIGINT); /* which `sigterm_shutdown` leaves alone */
}

/* The oldest that drain make way. */
static void bound_generations(struct fb_master *master)
{
    int64_t most = master->live->cycle->core.max_generations, n = 0;
    struct fb_generation *generation;

    TAILQ_FOREACH (generation, &master->generations, link)
        n += !generation->closing;
    TAILQ_FOREACH (generation, &master->generations, link) {
        if (most == 0 || n <= most)
            return;
        if (generation->closing || generation == master->live)
            continue;
        fb_log(&master->log, FB_NOTICE, 0,
            "more than %" PRId64 " generations (max_generations): generation %u is closed", most,
            generation->number);
        fb_generation_close(master, generation);
        n--;
    }
}

bool fb_generations_are_full(const struct fb_master *master)
{
    int64_t most = master->live == NULL ? 0 : master->live->cycle->core.max_generations, n = 0;
    const struct fb_generation *generation;

    TAILQ_FOREACH (generation, &master->generations, link)
        n++;
    return most != 0 && n > most;
}

static void take_back(struct fb_master *master)
{
    struct fb_generation *generation = master->starting;

    master->starting = NULL;
    master->failed = master->live == NULL;
    abandon_listeners(master, generation->cycle, NULL);
    fb_generation_close(master, generation); /* they have accepted nothing */
    fb_generations_sweep(master);
}

void fb_generation_abort(struct fb_master *master, const char *why)
{
    fb_log(&master->log, FB_EMERG, 0, "%s, %s", why,
        master->live != NULL ? "the configuration before stays in force" : "nothing is served");
    take_back(master);
}

static bool all_are(const struct fb_generation *generation, enum fb_seat_state state)
{
    for (unsigned i = 0; i < generation->seat_n; i++)
        if (generation->seats[i].state < state)
            return false;
    return true;
}

/* The sockets of the old configuration are the new one's now, or closed. */
static void retire_listeners(struct fb_master *master, struct fb_cycle *old, struct fb_cycle *new)
{
    struct fb_listener *listener;

    STAILQ_FOREACH (listener, &old->stream.listeners, link) {
        if (fb_listener_find(&new->stream.listeners, listener) != NULL) {
            for (unsigned i = 0; i < listener->fd_n; i++)
                listener->fds[i] = -1;
            continue;
        }
        fb_store_forget(listener, &master->log);
        if (!upgrade_shares(&master->upgrade, listener))
            fb_listener_unlink(listener, &master->log);
        fb_listener_close(listener);
    }
}

/* One of the listeners has failed, behind some that listen and may have clients already: a socket more
 * of reuseport has taken them from one that is kept. The new workers accept these and end. */
static void take_commit_back(struct fb_master *master)
{
    struct fb_generation *generation = master->starting;
    struct fb_listener *listener;

    fb_log(&master->log, FB_EMERG, 0,
        "a listener could not be opened, the configuration before stays in force");
    master->starting = NULL;
    abandon_listeners(master, generation->cycle, NULL);
    STAILQ_FOREACH (listener, &master->live->cycle->stream.listeners, link) {
        listener->adopted = true; /* options that it did not ask for are what they were */
        fb_listener_commit(listener, &master->log);
    }
    generation->draining = true; /* each is told to when it has said that it accepts */
    generation->step_back_ms = master->clock.mono_ms + STEP_BACK_MS;
    for (unsigned i = 0; i < generation->seat_n; i++)
        fb_seat_arm(master, generation, &generation->seats[i]);
    fb_generations_sweep(master);
}

static int commit_listeners(struct fb_master *master, struct fb_cycle *cycle)
{
    struct fb_listener *listener;

    STAILQ_FOREACH (listener, &cycle->stream.listeners, link)
        if (fb_listener_commit(listener, &master->log) == -1)
            return -1;
    return 0;
}

static void commit(struct fb_master *master)
{
    struct fb_generation *new = master->starting, *old = master->live;

    if (commit_listeners(master, new->cycle) == -1) {
        if (old != NULL)
            take_commit_back(master);
        else
            fb_generation_abort(master, "a listener could not be opened");
        return;
    }
    master->committed = true;
    allow_overlaps(master, new->cycle, false);
    if (master->upgrade.main)
        fb_store_listeners(&new->cycle->stream.listeners, &master->log);
    if (old != NULL) {
        retire_listeners(master, old->cycle, new->cycle);
        old->draining = true; /* a worker forked from now on would have no listeners */
    }
    for (unsigned i = 0; i < new->seat_n; i++)
        fb_seat_arm(master, new, &new->seats[i]);
}

/* The new generation serves. */
static void finish(struct fb_master *master)
{
    struct fb_generation *new = master->starting, *old = master->live;

    master->live = new;
    master->starting = NULL;
    fb_master_take_log(master, new);
    fb_store_forget_unclaimed(master->inherited, &new->cycle->stream.listeners, &master->log);
    fb_inherited_settle(master->inherited, &new->cycle->stream.listeners, &master->log);
    if (old != NULL) {
        fb_generation_drain(master, old);
        fb_generations_sweep(master);
        bound_generations(master);
    }
}

void fb_generation_conclude(struct fb_master *master)
{
    if (master->starting == NULL)
        return;
    if (master->committed)
        finish(master);
    else
        take_back(master);
}

void fb_generation_advance(struct fb_master *master)
{
    if (!master->committed && all_are(master->starting, FB_SEAT_READY))
        commit(master);
    if (master->starting != NULL && master->committed && all_are(master->starting, FB_SEAT_ARMED))
        finish(master);
}

void fb_generations_sweep(struct fb_master *master)
{
    struct fb_generation *generation, *next;

    TAILQ_FOREACH_SAFE (generation, &master->generations, link, next) {
        bool empty = true;

        for (unsigned i = 0; i < generation->seat_n; i++)
            empty = empty && generation->seats[i].pid == 0;
        if (empty && generation->draining && generation != master->live)
            destroy(master, generation);
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers' deaths, and what has a deadline. */
#include "master/master.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>

/* A worker that dies at once is replaced after a wait that grows from the first to the second. */
#define RESPAWN_MIN_MS 100
#define RESPAWN_MAX_MS 30000
#define AT_ONCE_MS 1000

static struct fb_seat *find_seat(
    struct fb_master *master, pid_t pid, struct fb_generation **generation)
{
    TAILQ_FOREACH (*generation, &master->generations, link)
        for (unsigned i = 0; i < (*generation)->seat_n; i++)
            if ((*generation)->seats[i].pid == pid)
                return &(*generation)->seats[i];
    return NULL;
}

static void log_death(struct fb_master *master, pid_t pid, int status)
{
    if (WIFSIGNALED(status))
        fb_log(&master->log, FB_ALERT, 0, "worker process %d exited on signal %d%s", (int)pid,
            WTERMSIG(status), WCOREDUMP(status) ? " (core dumped)" : "");
    else
        fb_log(&master->log, FB_NOTICE, 0, "worker process %d exited with code %d", (int)pid,
            WEXITSTATUS(status));
}

static void schedule_respawn(struct fb_master *master, struct fb_seat *seat, bool failed)
{
    uint64_t now = master->clock.mono_ms, wait = RESPAWN_MIN_MS;

    if (!failed) {
        seat->failures = 0;
        seat->respawn_ms = now;
        return;
    }
    for (unsigned i = 0; i < seat->failures && wait < RESPAWN_MAX_MS; i++)
        wait *= 2;
    if (wait > RESPAWN_MAX_MS)
        wait = RESPAWN_MAX_MS;
    seat->failures++;
    seat->respawn_ms = now + wait;
    fb_log(&master->log, FB_ALERT, 0,
        "a worker process died at once for the %u. time, the next starts in %" PRIu64 " ms",
        seat->failures, wait);
}

static void bereave(
    struct fb_master *master, struct fb_generation *generation, struct fb_seat *seat, int status)
{
    bool was_ready = seat->state >= FB_SEAT_READY;
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !seat->late;
    bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    bool young = !was_ready || seat->late || master->clock.mono_ms - seat->started_ms < AT_ONCE_MS;

    fb_master_spread_death(master, seat);
    fb_seat_clear(seat);
    if (generation->draining || master->state != FB_MASTER_RUNS)
        return;
    if (generation == master->starting && !master->committed && !killed) {
        fb_generation_abort(master, "a worker process could not start");
        return;
    }
    schedule_respawn(master, seat, young && !killed && !clean);
}

/* Gives back what the dead one has held, and keeps what it has counted. It wrote only to the zones of
 * its own cycle, but their memory may be another cycle's by now. */
static bool bury(struct fb_master *master, struct fb_slot_id id)
{
    struct fb_generation *generation;

    TAILQ_FOREACH (generation, &master->generations, link)
        fb_zones_bury(&generation->cycle->zones, id.slot);
    return fb_slot_bury(master->shared, id);
}

void fb_master_reap(struct fb_master *master)
{
    siginfo_t info = { .si_pid = 0 };

    /* a look first: what the worker held is given back while its pid cannot be used again */
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
        struct fb_generation *generation;
        struct fb_seat *seat = find_seat(master, info.si_pid, &generation);
        pid_t pid = info.si_pid;
        int status;

        if (seat != NULL && bury(master, seat->slot))
            fb_log(&master->log, FB_NOTICE, 0,
                "the accept mutex was taken back from worker process %d", (int)pid);
        if (waitpid(pid, &status, 0) == pid && !fb_reload_reaped(master, pid, status) &&
            !upgrade_reaped(&master->upgrade, pid, status) && seat != NULL) {
            log_death(master, pid, status);
            bereave(master, generation, seat, status);
            fb_master_spread_look(master, NULL);
        }
        info.si_pid = 0;
    }
    fb_generations_sweep(master);
}

static void fill_due_seats(struct fb_master *master, uint64_t *next)
{
    struct fb_generation *generation;

    TAILQ_FOREACH (generation, &master->generations, link)
        for (unsigned i = 0; i < generation->seat_n; i++) {
            struct fb_seat *seat = &generation->seats[i];

            if (seat->respawn_ms == 0 || generation->draining)
                continue;
            if (seat->respawn_ms <= master->clock.mono_ms &&
                fb_seat_fill(master, generation, i) == -1)
                seat->respawn_ms = master->clock.mono_ms + AT_ONCE_MS;
            if (seat->respawn_ms != 0 && (*next == 0 || seat->respawn_ms < *next))
                *next = seat->respawn_ms;
        }
}

static bool is_due(const struct fb_master *master, const struct fb_seat *seat)
{
    return seat->pid > 0 && seat->kill_ms != 0 && seat->kill_ms <= master->clock.mono_ms;
}

void fb_master_check_start(struct fb_master *master)
{
    const struct fb_generation *generation = master->starting;
    char why[96];

    if (generation == NULL || master->committed)
        return;
    for (unsigned i = 0; i < generation->seat_n; i++) {
        if (!is_due(master, &generation->seats[i]))
            continue;
        snprintf(why, sizeof(why),
            "worker process %d was not ready within worker_start_timeout (%" PRId64 " ms)",
            (int)generation->seats[i].pid, generation->cycle->core.worker_start_timeout);
        fb_generation_abort(master, why);
        return;
    }
}

/* It may hang where no signal is listened to. */
static void kill_worker(
    struct fb_master *master, const struct fb_generation *generation, struct fb_seat *seat)
{
    seat->kill_ms = 0;
    if (!generation->closing && !seat->watch.stuck) {
        seat->late = true;
        fb_log(&master->log, FB_ALERT, 0,
            "worker process %d was not ready within worker_start_timeout (%" PRId64
            " ms), it is killed",
            (int)seat->pid, generation->cycle->core.worker_start_timeout);
    }
    if (kill(seat->pid, SIGKILL) == -1 && errno != ESRCH)
        fb_log(&master->log, FB_ALERT, errno, "kill(%d, %d) failed", (int)seat->pid, SIGKILL);
}

static void kill_due_workers(struct fb_master *master, uint64_t *next)
{
    struct fb_generation *generation;

    TAILQ_FOREACH (generation, &master->generations, link)
        for (unsigned i = 0; i < generation->seat_n; i++) {
            struct fb_seat *seat = &generation->seats[i];

            if (is_due(master, seat))
                kill_worker(master, generation, seat);
            if (seat->pid > 0 && seat->kill_ms != 0 && (*next == 0 || seat->kill_ms < *next))
                *next = seat->kill_ms;
        }
}

void fb_master_meet_deadlines(struct fb_master *master)
{
    struct itimerval timer = { .it_value = { 0, 0 } };
    uint64_t next = 0, wait;

    if (master->state == FB_MASTER_RUNS)
        fill_due_seats(master, &next);
    kill_due_workers(master, &next);
    fb_reload_meet_deadline(master, &next);
    fb_watchdog_meet_deadlines(master, &next);
    fb_manager_meet_deadlines(master, &next);
    fb_master_tend_logs(master, &next);
    if (timers_wait(&master->timers) != -1) {
        uint64_t due = master->clock.mono_ms + (uint64_t)timers_wait(&master->timers);

        if (next == 0 || due < next)
            next = due;
    }
    if (next != 0) {
        wait = next > master->clock.mono_ms ? next - master->clock.mono_ms : 1;
        timer.it_value.tv_sec = (time_t)(wait / 1000);
        timer.it_value.tv_usec = (suseconds_t)(wait % 1000 * 1000);
    }
    setitimer(ITIMER_REAL, &timer, NULL);
}

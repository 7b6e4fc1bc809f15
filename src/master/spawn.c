/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's birth. */
#include "master/master.h"

#include "process/environment.h"
#include "process/logs.h"
#include "process/title.h"
#include "worker/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static bool cycle_has(const struct fb_cycle *cycle, int fd)
{
    const struct fb_listener *listener;

    STAILQ_FOREACH (listener, &cycle->stream.listeners, link)
        for (unsigned i = 0; i < listener->fd_n; i++)
            if (listener->fds[i] == fd)
                return true;
    return false;
}

/* In the child: another generation's sockets, logs and zones. A socket that is held on here would
 * still be listened on when its last configuration has gone, and memory would stay. */
static void close_foreign(const struct fb_generation *own, struct fb_generation *other)
{
    const struct fb_listener *listener;

    for (unsigned i = 0; i < other->seat_n; i++) {
        if (other->seats[i].channel != -1)
            close(other->seats[i].channel);
        if (other->seats[i].inbox != -1)
            close(other->seats[i].inbox);
    }
    if (other == own)
        return;
    fb_logs_close(&other->cycle->core);
    fb_zones_close(&other->cycle->zones);
    STAILQ_FOREACH (listener, &other->cycle->stream.listeners, link)
        for (unsigned i = listener->kept_n; i < listener->fd_n; i++) /* the first are inherited */
            if (listener->fds[i] != -1 && !cycle_has(own->cycle, listener->fds[i]))
                close(listener->fds[i]);
}

/* At a worker's end: the memory that it has inherited. */
static void forget_master(struct fb_master *master)
{
    struct fb_generation *generation;

    while ((generation = TAILQ_FIRST(&master->generations)) != NULL) {
        TAILQ_REMOVE(&master->generations, generation, link);
        fb_zones_close(&generation->cycle->zones);
        fb_cycle_destroy(&generation->cycle);
        free(generation);
    }
    fb_rehearsal_forget(&master->rehearsal);
    upgrade_done(&master->upgrade, false);
    fb_told_destroy(&master->told);
    fb_inherited_destroy(&master->inherited);
    fb_shared_destroy(&master->shared);
}

static FB_NORETURN void be_worker(
    struct fb_master *master, struct fb_generation *own, const struct fb_heritage *heritage)
{
    struct fb_generation *generation;
    int status;

    TAILQ_FOREACH (generation, &master->generations, link)
        close_foreign(own, generation);
    fb_inherited_forget(master->inherited, &own->cycle->stream.listeners);
    control_close(&master->control);
    endpoints_close(&master->endpoints);
    upgrade_link_close(&master->upgrade.link);
    if (master->background != -1) { /* not yet cut off from who started us */
        close(master->background);
        fb_process_detach(fb_logs_use_stderr(&own->cycle->core));
    }
    fb_title_set("worker process", "");
    status = fb_worker_main(heritage, FB_ROLE_WORKER);
    forget_master(master);
    exit(status);
}

static int fork_worker(
    struct fb_master *master, struct fb_generation *generation, unsigned index, int ends[2])
{
    struct fb_seat *seat = &generation->seats[index];
    struct fb_heritage heritage = {
        .cycle = generation->cycle,
        .shared = master->shared,
        .slot = seat->slot,
        .index = index,
        .channel = ends[1],
    };

    if (generation == master->starting && !master->committed) {
        heritage.diag = master->log.diag;
        heritage.diag_session = master->log.diag_session;
    }
    seat->pid = fork();
    if (seat->pid == 0) {
        close(ends[0]);
        be_worker(master, generation, &heritage);
    }
    if (seat->pid != -1)
        return 0;
    seat->pid = 0;
    return -1;
}

void fb_seat_expect(
    const struct fb_master *master, const struct fb_generation *generation, struct fb_seat *seat)
{
    int64_t limit = generation->cycle->core.worker_start_timeout;

    if (!generation->closing)
        seat->kill_ms = limit == 0 ? 0 : master->clock.mono_ms + (uint64_t)limit;
}

int fb_seat_fill(struct fb_master *master, struct fb_generation *generation, unsigned index)
{
    struct fb_seat *seat = &generation->seats[index];
    const char *failed = NULL;
    int ends[2];

    seat->respawn_ms = 0;
    if (!fb_slot_take(master->shared, &seat->slot)) {
        fb_log(&master->log, FB_ALERT, 0, "no more than %d worker processes can run at once",
            FB_SLOT_MAX);
        return -1;
    }
    if (fb_channel_open(ends) == -1) {
        fb_log(&master->log, FB_ALERT, errno, "socketpair() failed while spawning a worker");
        fb_slot_bury(master->shared, seat->slot);
        return -1;
    }
    if (fb_channel_wake(ends[0]) == -1)
        failed = "fcntl";
    else if (fork_worker(master, generation, index, ends) == -1)
        failed = "fork";
    if (failed != NULL) {
        fb_log(&master->log, FB_ALERT, errno, "%s() failed while spawning a worker", failed);
        fb_slot_bury(master->shared, seat->slot);
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    close(ends[1]);
    seat->channel = ends[0];
    seat->state = FB_SEAT_STARTING;
    seat->started_ms = master->clock.mono_ms;
    seat->late = false;
    seat->fills++;
    fb_seat_expect(master, generation, seat);
    fb_log(&master->log, FB_NOTICE, 0, "start worker process %d", (int)seat->pid);
    return 0;
}

void fb_seat_clear(struct fb_seat *seat)
{
    if (seat->channel != -1)
        close(seat->channel);
    if (seat->inbox != -1)
        close(seat->inbox);
    seat->channel = seat->inbox = -1;
    seat->pid = 0;
    seat->kill_ms = 0;
    seat->watch = (struct fb_watch) { .looks = 0 };
    seat->state = FB_SEAT_EMPTY;
}

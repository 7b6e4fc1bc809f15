/* SPDX-License-Identifier: BSD-2-Clause */
#include "master/master.h"

#include "process/binary.h"
#include "process/channel.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Beyond worker_start_timeout, which the new one meets itself and has more to say about. */
#define GRACE_MS 5000
/* Until one that was told to end is killed. */
#define KILL_MS 2000

void fb_upgrade_init(struct master *master, struct fb_inheritance *inheritance)
{
    struct fb_upgrade *upgrade = &master->upgrade;

    upgrade->link = inheritance->link;
    if (upgrade->link == -1)
        return;
    inheritance->link = -1;
    upgrade->role = FB_UPGRADE_NEW;
    upgrade->other = inheritance->parent;
    upgrade->told = master->log.told;
    if (fb_channel_wake(upgrade->link) == -1)
        fb_log(&master->log, FB_ALERT, errno, "the link to master process %d is not watched",
            (int)upgrade->other);
    fb_upgrade_listen(master);
}

bool fb_upgrade_is_pending(const struct master *master)
{
    return master->upgrade.role == FB_UPGRADE_OLD && !master->upgrade.serves;
}

bool fb_upgrade_has_made_way(const struct master *master)
{
    return master->upgrade.role == FB_UPGRADE_OLD && master->upgrade.serves;
}

bool fb_upgrade_is_main(const struct master *master)
{
    const struct fb_upgrade *upgrade = &master->upgrade;

    return upgrade->main || (upgrade->role != FB_UPGRADE_NEW && !fb_upgrade_has_made_way(master));
}

/* Alone, by whatever end of the other. */
static void forget_other(struct fb_upgrade *upgrade)
{
    if (upgrade->link != -1)
        close(upgrade->link);
    free(upgrade->in);
    free(upgrade->sockets);
    free(upgrade->control);
    fb_told_destroy(&upgrade->told);
    *upgrade = (struct fb_upgrade) { .link = -1 };
}

void fb_upgrade_forget(struct master *master)
{
    struct fb_upgrade *upgrade = &master->upgrade;

    if (upgrade->link != -1)
        close(upgrade->link);
    upgrade->link = -1;
}

/* Of a new one, to which all of its grave lines went until now. */
void fb_upgrade_drop_told(struct master *master)
{
    struct fb_upgrade *upgrade = &master->upgrade;

    if (upgrade->told == NULL)
        return;
    if (master->log.told == upgrade->told)
        master->log.told = NULL;
    fb_log_update(&master->log);
    fb_told_destroy(&upgrade->told);
}

void fb_upgrade_done(struct master *master)
{
    struct fb_upgrade *upgrade = &master->upgrade;

    if (upgrade->role == FB_UPGRADE_NEW && master->failed)
        fb_upgrade_report(upgrade->link, upgrade->told);
    if (master->log.told == upgrade->told)
        master->log.told = NULL;
    forget_other(upgrade);
}

/* Why it is refused, or NULL. */
static const char *refuse(const struct master *master, char text[FB_REASON_MAX])
{
    const struct fb_upgrade *upgrade = &master->upgrade;

    if (master->phase != MASTER_RUNS)
        return "the daemon is ending";
    if (getpid() == 1)
        return "process 1 cannot be replaced, its container would end with it: start another "
               "container";
    if (upgrade->role == FB_UPGRADE_NONE)
        return NULL;
    if (upgrade->role == FB_UPGRADE_OLD)
        snprintf(text, FB_REASON_MAX,
            "a new binary runs already, process %d: have it quit, or this one",
            (int)upgrade->other);
    else
        snprintf(text, FB_REASON_MAX, "the old binary still runs, process %d: have it quit first",
            (int)upgrade->other);
    return text;
}

/* All that the new one needs of us. */
static int hand_over(struct master *master, struct fb_handover *handover, int link)
{
    const struct fb_inherited_socket *passed;
    const struct fb_cycle *cycle = master->pool.serving->cycle;
    const struct fb_listener *listener;
    const struct fb_zone *zone;

    master->pidfile.shared = true;
    fb_handover_begin(handover, link, master->pidfile.lock_fd, 1 - master->shared->side,
        fb_shared_serial(master->shared));
    STAILQ_FOREACH (passed, &master->pool.adopted->sockets, link)
        if (passed->fd != -1)
            fb_handover_passed(handover, passed);
    STAILQ_FOREACH (listener, &cycle->stream.listeners, link)
        for (unsigned i = listener->kept_n; i < listener->fd_n; i++)
            if (listener->fds[i] != -1)
                fb_handover_socket(handover, listener->fds[i]);
    STAILQ_FOREACH (zone, &cycle->zones, link)
        fb_handover_zone(handover, zone->fd);
    return fb_handover_end(handover);
}

/* The side that the new one's workers get may have numbers of a master process that was killed. */
static void clear_side(struct master *master)
{
    uint32_t side = 1 - master->shared->side;

    for (uint32_t i = 0; i < FB_SLOT_MAX; i++)
        fb_zones_bury(&master->pool.serving->cycle->zones, side * FB_SLOT_MAX + i);
}

/* The child: what it says when it cannot become the new one is told as the new one would. */
static FB_NORETURN void become(int link, const struct fb_handover *handover)
{
    struct fb_told *told = fb_told_create();
    char text[1024];

    fb_signals_reset(); /* what is executed need not do it */
    fb_binary_execute(handover->text, handover->fds, handover->fd_n);
    snprintf(text, sizeof(text), "execve() \"%s\" failed (%d: %s)", fb_binary_path(), errno,
        strerror(errno));
    if (told != NULL)
        fb_told_add(told, fb_told_begin(told),
            &(struct fb_telling) { .level = FB_EMERG, .text = text, .text_n = -1 });
    fb_upgrade_report(link, told);
    _exit(EXIT_FAILURE);
}

/* NULL, or what has failed, with errno. */
static const char *start(struct master *master, struct fb_handover *handover)
{
    struct fb_upgrade *upgrade = &master->upgrade;
    int64_t limit = master->pool.serving->cycle->core.worker_start_timeout;
    int ends[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == -1)
        return "socketpair()";
    upgrade->link = ends[0];
    if (fb_channel_wake(ends[0]) == -1) {
        close(ends[1]);
        return "fcntl()";
    }
    upgrade->role = FB_UPGRADE_OLD;
    upgrade->told = fb_told_create(); /* without it, who asks is told less */
    if (upgrade->told != NULL)
        upgrade->told_round = fb_told_begin(upgrade->told);
    fb_upgrade_announce(master); /* it waits in the link */
    if (hand_over(master, handover, ends[1]) == -1) {
        close(ends[1]);
        return "malloc()";
    }
    pid = fork();
    if (pid == 0)
        become(ends[1], handover);
    close(ends[1]);
    if (pid == -1)
        return "fork()";
    upgrade->other = pid;
    upgrade->deadline_ms = limit == 0 ? 0 : master->clock.mono_ms + (uint64_t)limit + GRACE_MS;
    return NULL;
}

static void fail(struct master *master, char why[FB_REASON_MAX])
{
    struct fb_upgrade *upgrade = &master->upgrade;

    fb_control_return(master);
    fb_pidfile_return(&master->pidfile, &master->log);
    fb_upgrade_answer(master, false, why, upgrade->told);
    fb_log(&master->log, FB_ERROR, 0, "upgrade failed, process %d goes on to serve: %s",
        (int)getpid(), why);
    forget_other(upgrade);
}

void fb_upgrade_begin(struct master *master)
{
    struct fb_upgrade *upgrade = &master->upgrade;
    struct fb_handover handover = { .fds = NULL };
    char why[FB_REASON_MAX];
    const char *failed;

    if (reload_is_under_way(&master->reload) || master->pool.starting != NULL ||
        master->pool.serving == NULL || !master_take_command(master, FB_ORDER_UPGRADE))
        return;
    failed = refuse(master, why);
    if (failed != NULL) {
        fb_log(&master->log, FB_ERROR, 0, "upgrade refused: %s", failed);
        fb_upgrade_refused(master, failed);
        return;
    }
    fb_upgrade_begun(master);
    clear_side(master);
    fb_control_copy(master);
    if (fb_pidfile_copy(&master->pidfile, &master->log) == -1)
        failed = "a second pid file could not be written";
    else
        failed = start(master, &handover);
    fb_handover_destroy(&handover);
    if (failed == NULL) {
        fb_log(&master->log, FB_NOTICE, 0, "start new binary process %d, %s", (int)upgrade->other,
            fb_binary_path());
        return;
    }
    snprintf(why, sizeof(why), "%s (%d: %s)", failed, errno, strerror(errno));
    fail(master, why);
}

void fb_upgrade_served(struct master *master)
{
    struct fb_upgrade *upgrade = &master->upgrade;
    char why[FB_REASON_MAX] = "";

    if (upgrade->serves)
        return;
    upgrade->serves = true;
    upgrade->deadline_ms = 0;
    fb_pidfile_move(&master->pidfile, &master->log);
    fb_control_move(master);
    fb_log(&master->log, FB_NOTICE, 0,
        "new binary process %d serves: the upgrade is complete when process %d has quit",
        (int)upgrade->other, (int)getpid());
    fb_upgrade_answer(master, true, why, upgrade->told);
    fb_told_destroy(&upgrade->told);
    service_manager_give_way(&master->manager, upgrade->other);
    fb_upgrade_tell_main(master);
}

static void describe_end(const struct master *master, int status, char *text, size_t size)
{
    int pid = (int)master->upgrade.other;

    if (master->upgrade.late)
        snprintf(text, size,
            "new binary process %d did not serve within worker_start_timeout and %d ms", pid,
            GRACE_MS);
    else if (WIFSIGNALED(status))
        snprintf(text, size, "new binary process %d exited on signal %d", pid, WTERMSIG(status));
    else
        snprintf(text, size, "new binary process %d exited with code %d", pid, WEXITSTATUS(status));
}

bool fb_upgrade_reaped(struct master *master, pid_t pid, int status)
{
    struct fb_upgrade *upgrade = &master->upgrade;
    char why[FB_REASON_MAX];

    if (upgrade->role != FB_UPGRADE_OLD || pid != upgrade->other)
        return false;
    fb_upgrade_listen(master); /* what it has said last */
    describe_end(master, status, why, sizeof(why));
    if (!upgrade->serves) {
        fail(master, why);
    } else {
        fb_log(&master->log, WIFEXITED(status) ? FB_NOTICE : FB_ALERT, 0,
            "%s: process %d is the only one again", why, (int)getpid());
        forget_other(upgrade);
        fb_pidfile_return(&master->pidfile, &master->log);
        fb_control_return(master);
    }
    if (master->phase == MASTER_RUNS) {
        master_publish(master, false);   /* where a reload meanwhile would have them */
        if (!pool_revive(&master->pool)) /* some have sessions yet: a whole generation */
            fb_order_give(FB_ORDER_RELOAD);
        pool_rescan(&master->pool, NULL);
    }
    return true;
}

void fb_upgrade_left_alone(struct master *master)
{
    bool mute = master->upgrade.serves && !master->upgrade.main;

    fb_log(&master->log, FB_NOTICE, 0,
        "old binary process %d has ended: process %d is the only one", (int)master->upgrade.other,
        (int)getpid());
    fb_upgrade_drop_told(master);
    forget_other(&master->upgrade);
    if (mute)
        service_manager_ready(&master->manager, fb_upgrade_is_main(master));
    pool_rescan(&master->pool, NULL);
}

static void signal_other(struct master *master, int number)
{
    pid_t pid = master->upgrade.other;

    if (kill(pid, number) == -1 && errno != ESRCH)
        fb_log(&master->log, FB_ALERT, errno, "kill(%d, %d) failed", (int)pid, number);
}

/* Gently first. */
static void end_other(struct master *master)
{
    struct fb_upgrade *upgrade = &master->upgrade;

    signal_other(master, upgrade->told_to_end ? SIGKILL : SIGTERM);
    upgrade->deadline_ms = upgrade->told_to_end ? 0 : master->clock.mono_ms + KILL_MS;
    upgrade->told_to_end = true;
}

void fb_upgrade_meet_deadline(struct master *master, uint64_t *next)
{
    struct fb_upgrade *upgrade = &master->upgrade;

    if (upgrade->deadline_ms == 0)
        return;
    if (upgrade->deadline_ms <= master->clock.mono_ms) {
        upgrade->late = upgrade->late || !upgrade->told_to_end;
        end_other(master);
    }
    if (upgrade->deadline_ms != 0 && (*next == 0 || upgrade->deadline_ms < *next))
        *next = upgrade->deadline_ms;
}

void fb_upgrade_ending(struct master *master, bool gracefully, bool both)
{
    struct fb_upgrade *upgrade = &master->upgrade;

    if (fb_upgrade_is_pending(master) && !upgrade->told_to_end)
        end_other(master); /* nobody who ends a daemon wants another one */
    if (both && upgrade->role == FB_UPGRADE_NEW) {
        signal_other(master, gracefully ? SIGQUIT : SIGINT);
        return;
    }
    fb_upgrade_give_queues(master);
    if (upgrade->role == FB_UPGRADE_NEW && upgrade->main) {
        service_manager_give_way(&master->manager, upgrade->other);
        fb_upgrade_tell_main(master);
        upgrade->main = false;
    }
}

/* What is stored stays so, for the service's next start. */
void fb_upgrade_ended(struct master *master)
{
    struct fb_upgrade *upgrade = &master->upgrade;

    if (upgrade->role != FB_UPGRADE_NEW || !upgrade->main)
        return;
    fb_notify_mainpid(&master->log, upgrade->other);
    fb_upgrade_tell_main(master);
    upgrade->main = false;
}

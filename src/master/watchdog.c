/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker that stays in one callback for longer than worker_watchdog is killed, and replaced as one
 * that has crashed. It is looked at twice in that time, and must have been found in the same place by
 * three looks in a row: a machine that was suspended, or busy with others, lets some time pass without
 * any of them. */
#include "master/watchdog.h"

#include "master/master.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOOKS 2 /* behind the first */
/* A core dump takes its time. Who has not ended by then, or who ignores the signal, is killed. */
#define KILL_MS 10000

/* Its letter in /proc; 0 where that cannot be read. */
static char process_state(pid_t pid)
{
    char path[32], text[512] = "", *end;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fgets(text, sizeof(text), file) == NULL)
        text[0] = '\0';
    fclose(file);
    end = strrchr(text, ')'); /* its name may hold any character */
    return end != NULL && end[1] == ' ' ? end[2] : '\0';
}

/* By a signal or a debugger: somebody takes care of it. */
static bool is_stopped(pid_t pid)
{
    char state = process_state(pid);

    return state == 'T' || state == 't';
}

static const char *protocol_name(const struct fb_cycle *cycle, unsigned index)
{
    const struct fb_server *server;

    STAILQ_FOREACH (server, &cycle->stream.servers, link)
        if (server->protocol != NULL && server->protocol_index == index)
            return server->protocol->name;
    return NULL;
}

static void describe(const struct fb_cycle *cycle, uint64_t seen, char *text, size_t size)
{
    const char *callback = fb_callback_names[fb_heartbeat_callback(seen)];
    const char *protocol = protocol_name(cycle, fb_heartbeat_protocol(seen));

    if (callback == NULL)
        snprintf(text, size, "outside of callbacks");
    else if (protocol == NULL)
        snprintf(text, size, "in callback \"%s\"", callback);
    else
        snprintf(text, size, "in callback \"%s\" of protocol \"%s\"", callback, protocol);
}

static void kill_worker(
    struct fb_master *master, const struct fb_generation *generation, struct fb_seat *seat)
{
    uint64_t ms = master->clock.mono_ms - seat->watch.since_ms;
    uint64_t limit = (uint64_t)generation->cycle->core.worker_watchdog;
    char where[128];

    describe(generation->cycle, seat->watch.seen, where, sizeof(where));
    fb_log(&master->log, FB_ALERT, 0,
        "worker process %d was stuck %s for %" PRIu64 " %s (worker_watchdog), it is killed",
        (int)seat->pid, where, ms < 1000 ? ms : ms / 1000, ms < 1000 ? "ms" : "s");
    seat->watch.stuck = true;
    seat->kill_ms = master->clock.mono_ms + (limit < KILL_MS ? limit : KILL_MS);
    if (kill(seat->pid, SIGABRT) == -1 && errno != ESRCH) /* its core shows where it hangs */
        fb_log(&master->log, FB_ALERT, errno, "kill(%d, %d) failed", (int)seat->pid, SIGABRT);
}

/* Before that it has worker_start_timeout, and when it is to end, its deadline. */
static bool is_watched(const struct fb_seat *seat)
{
    return seat->pid > 0 && seat->state >= FB_SEAT_ARMED && seat->kill_ms == 0 &&
           !seat->watch.stuck;
}

static void look(
    struct fb_master *master, const struct fb_generation *generation, struct fb_seat *seat)
{
    struct fb_watch *watch = &seat->watch;
    uint64_t now;

    if (!is_watched(seat))
        return;
    now = fb_heartbeat_now(&fb_shared_slot(master->shared, seat->slot)->heartbeat);
    if (watch->since_ms == 0 || now != watch->seen ||
        fb_heartbeat_callback(now) == FB_CALLBACK_WAIT || is_stopped(seat->pid))
        *watch = (struct fb_watch) { .seen = now, .since_ms = master->clock.mono_ms };
    else if (++watch->looks >= LOOKS)
        kill_worker(master, generation, seat);
}

void fb_watchdog_meet_deadlines(struct fb_master *master, uint64_t *next)
{
    struct fb_generation *generation;

    TAILQ_FOREACH (generation, &master->generations, link) {
        uint64_t limit = (uint64_t)generation->cycle->core.worker_watchdog;

        if (limit == 0)
            continue;
        if (generation->look_ms <= master->clock.mono_ms) {
            for (unsigned i = 0; i < generation->seat_n; i++)
                look(master, generation, &generation->seats[i]);
            generation->look_ms = master->clock.mono_ms + (limit + 1) / 2;
        }
        if (*next == 0 || generation->look_ms < *next)
            *next = generation->look_ms;
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop's own sources, which wake it: that of notify(), and whatever else the loop watches for
 * itself. Each is made at most once a loop, and loop_done() closes it. What they are made of is the
 * system's (loop_wake_linux.c, loop_wake_posix.c), or the mechanism's. */
#include "event/loop_wake.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

/* A timer that is set just before a tick is set by a clock that is a tick old: it expires as much
 * later. */
static void lag_behind(struct loop *loop)
{
    uint64_t now = loop->clock.mono_ms;

    loop->due_by_ms = now > loop->tick_ms ? now - loop->tick_ms : 0;
}

void loop_wake_begin_ticks(struct loop *loop, uint64_t ms)
{
    assert(ms > 0 && loop->tick_ms == 0);
    loop->tick_ms = ms;
    lag_behind(loop);
    loop->timers.due_by = &loop->due_by_ms;
}

void loop_wake_tick(struct loop *loop)
{
    loop_read_clock(loop);
    lag_behind(loop);
}

static void notifier_readable(struct loop *loop, struct source *source)
{
    assert(source == loop->notifier);
    if (source->fd != -1)
        loop_wake_drain(source->fd);
    source->events[EVENT_READ].ready = false;
    loop->notified(loop);
}

static const struct source_ops notifier_ops = { .run = { [EVENT_READ] = notifier_readable } };

struct source *loop_watch_own(struct loop *loop, int fd, enum event_queue queue,
    const struct source_ops *ops, const char *what)
{
    struct source *source = NULL;

    if (fd == -1) {
        log_write(loop->log, LEVEL_EMERG, errno, "%s failed", what);
        return NULL;
    }
    source = source_get(&loop->sources);
    if (source == NULL) {
        log_write(loop->log, LEVEL_EMERG, 0, "no slot for %s", what);
        close(fd);
        return NULL;
    }
    source->fd = fd;
    source->ops = ops;
    source->io = &io_socket;
    source->queue = (uint8_t)queue;
    if (source_arm(loop, source, EVENT_READ) == -1) {
        log_write(loop->log, LEVEL_EMERG, errno, "%s cannot be watched", what);
        source_close(loop, source, false);
        return NULL;
    }
    return source;
}

struct source *loop_make_own(
    struct loop *loop, enum event_queue queue, const struct source_ops *ops)
{
    struct source *source = source_get(&loop->sources);

    if (source == NULL) {
        log_write(loop->log, LEVEL_EMERG, 0, "no slot for a source of the loop's own");
        return NULL;
    }
    source->ops = ops;
    source->io = &io_socket;
    source->queue = (uint8_t)queue;
    return source;
}

void loop_report_own(struct loop *loop, struct source *source)
{
    assert(source != NULL && source->fd == -1 && loop_owns(loop, source));
    if (source->queue == QUEUE_NONE)
        source->ops->run[EVENT_READ](loop, source);
    else
        loop_post(loop, &source->events[EVENT_READ], (enum event_queue)source->queue);
}

static struct source *start_notices(struct loop *loop)
{
    if (loop->mechanism->start_notices(loop) == 0)
        return loop_make_own(loop, QUEUE_NORMAL, &notifier_ops);
    log_write(loop->log, LEVEL_EMERG, errno, "notices of threads cannot be watched");
    return NULL;
}

int loop_set_notified(struct loop *loop, void (*notified)(struct loop *loop))
{
    assert(notified != NULL);
    loop->notified = notified;
    if (loop->notifier == NULL && loop->mechanism->start_notices != NULL)
        loop->notifier = start_notices(loop);
    else if (loop->notifier == NULL)
        loop->notifier = loop_watch_own(
            loop, loop_wake_open(loop), QUEUE_NORMAL, &notifier_ops, "the descriptor of notices");
    return loop->notifier == NULL ? -1 : 0;
}

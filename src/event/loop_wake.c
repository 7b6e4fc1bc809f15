/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop's own sources, which wake it: an eventfd for notify(), a timerfd for timer_resolution, a
 * signalfd for signals that come while the loop is busy (loop_signals.c has the way of mechanisms
 * whose wait takes no mask). Each is made at most once a loop, and loop_done() closes it. */
#include "event/loop.h"

#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Resets the 64-bit count that an eventfd or a timerfd holds, if the source is one. */
static void read_count(struct source *source)
{
    uint64_t count;

    while (source->fd != -1 && read(source->fd, &count, sizeof(count)) == -1 && errno == EINTR)
        ;
    source->events[EVENT_READ].ready = false;
}

static void notifier_readable(struct loop *loop, struct source *source)
{
    assert(source == loop->notifier);
    read_count(source);
    loop->notified(loop);
}

static void ticker_readable(struct loop *loop, struct source *source)
{
    assert(source == loop->ticker);
    read_count(source);
    loop_read_clock(loop);
}

/* Lets the pending signals through, whose handlers run now. */
static void signaler_readable(struct loop *loop, struct source *source)
{
    sigset_t blocked;

    assert(source == loop->signaler && loop->wait_mask != NULL);
    source->events[EVENT_READ].ready = false;
    sigprocmask(SIG_SETMASK, loop->wait_mask, &blocked);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static const struct source_ops signaler_ops = { .run = { [EVENT_READ] = signaler_readable } };
static const struct source_ops notifier_ops = { .run = { [EVENT_READ] = notifier_readable } };
static const struct source_ops ticker_ops = { .run = { [EVENT_READ] = ticker_readable } };

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

/* Makes a source for what the mechanism reports by itself; NULL after an emerg line. */
static struct source *make_own(
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
        return make_own(loop, QUEUE_NORMAL, &notifier_ops);
    log_write(loop->log, LEVEL_EMERG, errno, "notices of threads cannot be watched");
    return NULL;
}

static struct source *start_ticks(struct loop *loop, uint64_t ms)
{
    if (loop->mechanism->start_ticks(loop, ms) == 0)
        return make_own(loop, QUEUE_NONE, &ticker_ops);
    log_write(loop->log, LEVEL_EMERG, errno, "ticks of a timer cannot be watched");
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
            loop, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), QUEUE_NORMAL, &notifier_ops, "eventfd()");
    return loop->notifier == NULL ? -1 : 0;
}

/* Returns a timerfd that expires every `ms`; -1 with errno. */
static int open_ticks(uint64_t ms)
{
    struct timespec interval = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    struct itimerspec spec = { .it_interval = interval, .it_value = interval };
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

    if (fd != -1 && timerfd_settime(fd, 0, &spec, NULL) == -1) {
        close(fd);
        return -1;
    }
    return fd;
}

int loop_set_resolution(struct loop *loop, uint64_t ms)
{
    assert(ms > 0 && loop->ticker == NULL);
    if (loop->mechanism->start_ticks != NULL)
        loop->ticker = start_ticks(loop, ms);
    else
        loop->ticker =
            loop_watch_own(loop, open_ticks(ms), QUEUE_NONE, &ticker_ops, "the timer of ticks");
    return loop->ticker == NULL ? -1 : 0;
}

int loop_watch_signals(struct loop *loop)
{
    sigset_t waited_for;

    assert(loop->signaler == NULL && loop->wait_mask != NULL);
    sigprocmask(SIG_BLOCK, NULL, &waited_for);
    for (int number = 1; number < NSIG; number++)
        if (sigismember(loop->wait_mask, number) == 1)
            sigdelset(&waited_for, number);
    loop->signaler = loop_watch_own(loop, signalfd(-1, &waited_for, SFD_NONBLOCK | SFD_CLOEXEC),
        QUEUE_NONE, &signaler_ops, "signalfd()");
    return loop->signaler == NULL ? -1 : 0;
}

int loop_notify_eventfd(struct loop *loop)
{
    static const uint64_t one = 1;

    assert(loop->notifier != NULL);
    /* a full counter is as good: the loop will wake */
    if (write(loop->notifier->fd, &one, sizeof(one)) == -1 && errno != EAGAIN)
        return -1;
    return 0;
}

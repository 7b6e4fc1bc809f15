/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop's own sources, which wake it: an eventfd for notify(), a timerfd for timer_resolution, a
 * signalfd for signals that come while the loop is busy. Each is made at most once a loop, and
 * fb_loop_done() closes it. */
#include "event/loop.h"

#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Resets the 64-bit count that an eventfd or a timerfd holds. */
static void read_count(struct fb_source *source)
{
    uint64_t count;

    while (read(source->fd, &count, sizeof(count)) == -1 && errno == EINTR)
        ;
    source->events[FB_READ].ready = false;
}

static void notifier_readable(struct fb_loop *loop, struct fb_source *source)
{
    assert(source == loop->notifier);
    read_count(source);
    loop->notified(loop);
}

static void ticker_readable(struct fb_loop *loop, struct fb_source *source)
{
    assert(source == loop->ticker);
    read_count(source);
    loop->mechanism->read_clock(loop);
}

/* Lets the pending signals through, whose handlers run now. */
static void signaler_readable(struct fb_loop *loop, struct fb_source *source)
{
    sigset_t blocked;

    assert(source == loop->signaler && loop->wait_mask != NULL);
    source->events[FB_READ].ready = false;
    sigprocmask(SIG_SETMASK, loop->wait_mask, &blocked);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static const struct fb_source_ops signaler_ops = { .run = { [FB_READ] = signaler_readable } };
static const struct fb_source_ops notifier_ops = { .run = { [FB_READ] = notifier_readable } };
static const struct fb_source_ops ticker_ops = { .run = { [FB_READ] = ticker_readable } };

/* Makes a source of the descriptor and arms it; NULL after an emerg line, and then it is closed. */
static struct fb_source *watch_descriptor(struct fb_loop *loop, int fd, enum fb_queue queue,
    const struct fb_source_ops *ops, const char *what)
{
    struct fb_source *source = NULL;

    if (fd == -1) {
        fb_log(loop->log, FB_EMERG, errno, "%s failed", what);
        return NULL;
    }
    source = fb_source_get(&loop->sources);
    if (source == NULL) {
        fb_log(loop->log, FB_EMERG, 0, "no slot for %s", what);
        close(fd);
        return NULL;
    }
    source->fd = fd;
    source->ops = ops;
    source->io = &fb_io_socket;
    source->queue = (uint8_t)queue;
    if (fb_source_arm(loop, source, FB_READ) == -1) {
        fb_log(loop->log, FB_EMERG, errno, "%s cannot be watched", what);
        fb_source_close(loop, source, false);
        return NULL;
    }
    return source;
}

int fb_loop_set_notified(struct fb_loop *loop, void (*notified)(struct fb_loop *loop))
{
    assert(notified != NULL);
    loop->notified = notified;
    if (loop->notifier == NULL)
        loop->notifier = watch_descriptor(loop, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
            FB_QUEUE_NORMAL, &notifier_ops, "eventfd()");
    return loop->notifier == NULL ? -1 : 0;
}

int fb_loop_set_resolution(struct fb_loop *loop, uint64_t ms)
{
    struct timespec interval = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    struct itimerspec spec = { .it_interval = interval, .it_value = interval };
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

    assert(ms > 0 && loop->ticker == NULL);
    if (fd != -1 && timerfd_settime(fd, 0, &spec, NULL) == -1) {
        fb_log(loop->log, FB_EMERG, errno, "timerfd_settime() failed");
        close(fd);
        return -1;
    }
    loop->ticker = watch_descriptor(loop, fd, FB_QUEUE_NONE, &ticker_ops, "timerfd_create()");
    return loop->ticker == NULL ? -1 : 0;
}

int fb_loop_watch_signals(struct fb_loop *loop)
{
    sigset_t waited_for;

    assert(loop->signaler == NULL && loop->wait_mask != NULL);
    sigprocmask(SIG_BLOCK, NULL, &waited_for);
    for (int number = 1; number < NSIG; number++)
        if (sigismember(loop->wait_mask, number) == 1)
            sigdelset(&waited_for, number);
    loop->signaler = watch_descriptor(loop, signalfd(-1, &waited_for, SFD_NONBLOCK | SFD_CLOEXEC),
        FB_QUEUE_NONE, &signaler_ops, "signalfd()");
    return loop->signaler == NULL ? -1 : 0;
}

int fb_eventfd_notify(struct fb_loop *loop)
{
    static const uint64_t one = 1;

    assert(loop->notifier != NULL);
    /* a full counter is as good: the loop will wake */
    if (write(loop->notifier->fd, &one, sizeof(one)) == -1 && errno != EAGAIN)
        return -1;
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Waking a loop on Linux: an eventfd for notices, a timerfd for ticks, a signalfd for signals
 * that come while the loop is busy (loop_signals.c has the way of mechanisms whose wait takes no
 * mask). */
#include "event/loop_wake.h"

#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Resets the 64-bit count that an eventfd or a timerfd holds. */
void loop_wake_drain(int fd)
{
    uint64_t count;

    while (read(fd, &count, sizeof(count)) == -1 && errno == EINTR)
        ;
}

int loop_wake_open(struct loop *loop)
{
    (void)loop;
    return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

int loop_notify_descriptor(struct loop *loop)
{
    static const uint64_t one = 1;

    assert(loop->notifier != NULL);
    /* a full counter is as good: the loop will wake */
    if (write(loop->notifier->fd, &one, sizeof(one)) == -1 && errno != EAGAIN)
        return -1;
    return 0;
}

static void ticker_readable(struct loop *loop, struct source *source)
{
    assert(source == loop->ticker);
    if (source->fd != -1)
        loop_wake_drain(source->fd);
    source->events[EVENT_READ].ready = false;
    loop_wake_tick(loop);
}

static const struct source_ops ticker_ops = { .run = { [EVENT_READ] = ticker_readable } };

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
    if (loop->mechanism->start_ticks == NULL)
        loop->ticker =
            loop_watch_own(loop, open_ticks(ms), QUEUE_NONE, &ticker_ops, "the timer of ticks");
    else if (loop->mechanism->start_ticks(loop, ms) == 0)
        loop->ticker = loop_make_own(loop, QUEUE_NONE, &ticker_ops);
    else
        log_write(loop->log, LEVEL_EMERG, errno, "ticks of a timer cannot be watched");
    if (loop->ticker == NULL)
        return -1;
    loop_wake_begin_ticks(loop, ms);
    return 0;
}

void loop_wait_for_tick(struct loop *loop, int timeout)
{
    loop->mechanism->process_events(loop, timeout); /* the ticker is one of its sources */
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

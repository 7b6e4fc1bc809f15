/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop's own sources, which wake the loop: notices of threads, ticks of timer_resolution, and
 * signals of a busy loop. Each is made at most once, of a descriptor of the system's (os/wakeup.h)
 * or by the mechanism; loop_done() closes all.
 *
 * Where the wait takes no mask, signals are let through around the wait, and handlers write a byte
 * to a pipe that the loop watches: a signal between the mask's change and the wait ends the wait.
 * Handlers never run outside of the wait. */
#include "event/loop.h"

#include "os/descriptor.h"
#include "os/wakeup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

/* A timer set just before a tick is set by a clock a tick old: expiry is as much later. */
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
    loop->read_clock(&loop->clock);
    lag_behind(loop);
}

static void quiet_bell(struct source *source)
{
    if (source->fd != -1)
        os_bell_quiet(source->fd);
    source->events[EVENT_READ].ready = false;
}

static void notifier_readable(struct loop *loop, struct source *source)
{
    assert(source == loop->notifier);
    quiet_bell(source);
    loop->notified(loop);
}

static const struct source_ops notifier_ops = { .run = { [EVENT_READ] = notifier_readable } };

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

/* Makes and arms a source of a descriptor, for -1 with errno in the line. NULL after an emerg line
 * with `what`, and the descriptor is closed. */
static struct source *watch_own(struct loop *loop, int fd, enum event_queue queue,
    const struct source_ops *ops, const char *what)
{
    struct source *source;

    if (fd == -1) {
        log_write(loop->log, LEVEL_EMERG, errno, "%s failed", what);
        return NULL;
    }
    source = loop_make_own(loop, queue, ops);
    if (source == NULL) {
        close(fd);
        return NULL;
    }
    source->fd = fd;
    if (source_arm(loop, source, EVENT_READ) == 0)
        return source;
    log_write(loop->log, LEVEL_EMERG, errno, "%s cannot be watched", what);
    source_close(loop, source, false);
    return NULL;
}

int loop_set_notified(struct loop *loop, void (*notified)(struct loop *loop))
{
    int ends[2] = { -1, -1 };

    assert(notified != NULL);
    loop->notified = notified;
    if (loop->notifier != NULL)
        return 0;
    if (loop->mechanism->start_notices == NULL) {
        if (os_bell_open(ends) == 0 && ends[1] != ends[0])
            loop->notify_fd = ends[1];
        loop->notifier =
            watch_own(loop, ends[0], QUEUE_NORMAL, &notifier_ops, "the descriptor of notices");
    } else if (loop->mechanism->start_notices(loop) == 0) {
        loop->notifier = loop_make_own(loop, QUEUE_NORMAL, &notifier_ops);
    } else {
        log_write(loop->log, LEVEL_EMERG, errno, "notices of threads cannot be watched");
    }
    return loop->notifier == NULL ? -1 : 0;
}

int loop_notify_descriptor(struct loop *loop)
{
    assert(loop->notifier != NULL);
    if (os_bell_ring(loop->notify_fd != -1 ? loop->notify_fd : loop->notifier->fd) == 0)
        return 0;
    return errno == EAGAIN ? 0 : -1; /* a full bell is as good: the loop will wake */
}

static void ticker_readable(struct loop *loop, struct source *source)
{
    assert(source == loop->ticker);
    quiet_bell(source);
    loop_wake_tick(loop);
}

static const struct source_ops ticker_ops = { .run = { [EVENT_READ] = ticker_readable } };

/* Returns the time now, and leaves the loop's time unchanged. */
static uint64_t read_now(struct loop *loop)
{
    struct clock before = loop->clock;
    uint64_t now;

    loop->read_clock(&loop->clock);
    now = loop->clock.mono_ms;
    loop->clock = before;
    return now;
}

static void ticker_wait(struct loop *loop, int timeout)
{
    uint64_t now;
    int left;

    if (loop->next_tick_ms == 0) { /* the mechanism watches the ticker */
        loop->mechanism->process_events(loop, timeout);
        return;
    }
    now = read_now(loop);
    left = now < loop->next_tick_ms ? (int)(loop->next_tick_ms - now) : 0;
    loop->mechanism->process_events(loop, timeout == -1 || timeout > left ? left : timeout);
    now = read_now(loop);
    if (now < loop->next_tick_ms)
        return;
    loop->next_tick_ms += ((now - loop->next_tick_ms) / loop->tick_ms + 1) * loop->tick_ms;
    loop_report_own(loop, loop->ticker);
}

int loop_set_resolution(struct loop *loop, uint64_t ms)
{
    int fd;

    assert(ms > 0 && loop->ticker == NULL);
    if (loop->mechanism->start_ticks == NULL) {
        fd = os_ticks_open(ms);
        if (fd != -1 || errno != ENOSYS) {
            loop->ticker = watch_own(loop, fd, QUEUE_NONE, &ticker_ops, "the timer of ticks");
        } else { /* without a timer, waits last until the next tick */
            assert(ms <= INT_MAX);
            loop->next_tick_ms = loop->clock.mono_ms + ms;
            loop->ticker = loop_make_own(loop, QUEUE_NONE, &ticker_ops);
        }
    } else if (loop->mechanism->start_ticks(loop, ms) == 0) {
        loop->ticker = loop_make_own(loop, QUEUE_NONE, &ticker_ops);
    } else {
        log_write(loop->log, LEVEL_EMERG, errno, "ticks of a timer cannot be watched");
    }
    if (loop->ticker == NULL)
        return -1;
    loop->wait_ticks = ticker_wait;
    loop_wake_begin_ticks(loop, ms);
    return 0;
}

/* Handlers have run before their bytes arrive: only the bytes are left. */
static void signal_pipe_readable(struct loop *loop, struct source *source)
{
    char bytes[64];
    ssize_t n;

    assert(source == loop->signaler);
    do
        n = read(source->fd, bytes, sizeof(bytes));
    while (n == (ssize_t)sizeof(bytes) || (n == -1 && errno == EINTR));
    source->events[EVENT_READ].ready = false;
}

static const struct source_ops signal_pipe_ops = { .run = { [EVENT_READ] = signal_pipe_readable } };

static int open_signal_pipe(struct loop *loop)
{
    int ends[2] = { -1, -1 };

    assert(loop->signaler == NULL && loop->signal_fd == -1 && loop->wait_mask != NULL);
    if (descriptor_pipe(ends, O_NONBLOCK) == 0)
        loop->signal_fd = ends[1];
    loop->signaler = watch_own(loop, ends[0], QUEUE_NONE, &signal_pipe_ops, "pipe()");
    return loop->signaler == NULL ? -1 : 0;
}

/* A process with threads has no defined sigprocmask() but on some systems. */
void loop_let_signals(const struct loop *loop, sigset_t *blocked)
{
    if (loop->wait_mask != NULL)
        pthread_sigmask(SIG_SETMASK, loop->wait_mask, blocked);
}

void loop_hold_signals(const struct loop *loop, const sigset_t *blocked)
{
    if (loop->wait_mask != NULL)
        pthread_sigmask(SIG_SETMASK, blocked, NULL);
}

/* Lets the pending signals through; the handlers run now. */
static void signaler_readable(struct loop *loop, struct source *source)
{
    sigset_t blocked;

    assert(source == loop->signaler && loop->wait_mask != NULL);
    source->events[EVENT_READ].ready = false;
    loop_let_signals(loop, &blocked);
    loop_hold_signals(loop, &blocked);
}

static const struct source_ops signaler_ops = { .run = { [EVENT_READ] = signaler_readable } };

int loop_watch_signals(struct loop *loop)
{
    int fd;

    assert(loop->signaler == NULL && loop->wait_mask != NULL);
    if (!loop->mechanism->masks)
        return open_signal_pipe(loop);
    fd = os_signals_open(loop->wait_mask);
    if (fd == -1 && errno == ENOSYS)
        return open_signal_pipe(loop);
    loop->signaler = watch_own(loop, fd, QUEUE_NONE, &signaler_ops, "signalfd()");
    return loop->signaler == NULL ? -1 : 0;
}

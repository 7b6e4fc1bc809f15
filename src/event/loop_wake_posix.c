/* SPDX-License-Identifier: BSD-2-Clause */
/* Waking a loop where the system has no descriptors for it: a pipe for notices, and for ticks
 * the loop's own waits, none of which lasts longer than to the next tick. Signals come by the pipe
 * of loop_signals.c, because no wait takes a mask here. The clock is read about every wait, so that
 * timer_resolution spares nothing. */
#include "event/loop_wake.h"
#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

void loop_wake_drain(int fd)
{
    char bytes[64];
    ssize_t n;

    do
        n = read(fd, bytes, sizeof(bytes));
    while (n == (ssize_t)sizeof(bytes) || (n == -1 && errno == EINTR));
}

int loop_wake_open(struct loop *loop)
{
    int ends[2];

    assert(loop->notify_fd == -1);
    if (descriptor_pipe(ends, O_NONBLOCK) == -1)
        return -1;
    loop->notify_fd = ends[1];
    return ends[0];
}

int loop_notify_descriptor(struct loop *loop)
{
    ssize_t n;

    assert(loop->notifier != NULL && loop->notify_fd != -1);
    do
        n = write(loop->notify_fd, "", 1);
    while (n == -1 && errno == EINTR);
    return n == -1 && errno != EAGAIN ? -1 : 0; /* a full pipe is as good: the loop will wake */
}

static void tick(struct loop *loop, struct source *source)
{
    assert(source == loop->ticker);
    (void)source;
    loop_wake_tick(loop);
}

static const struct source_ops ticker_ops = { .run = { [EVENT_READ] = tick } };

int loop_set_resolution(struct loop *loop, uint64_t ms)
{
    assert(ms > 0 && ms <= INT_MAX && loop->ticker == NULL);
    if (loop->mechanism->start_ticks != NULL && loop->mechanism->start_ticks(loop, ms) == -1) {
        log_write(loop->log, LEVEL_EMERG, errno, "ticks of a timer cannot be watched");
        return -1;
    }
    loop_wake_begin_ticks(loop, ms);
    loop->next_tick_ms = loop->clock.mono_ms + ms;
    loop->ticker = loop_make_own(loop, QUEUE_NONE, &ticker_ops);
    return loop->ticker == NULL ? -1 : 0;
}

/* Returns the time now, and leaves the loop's own as it was. */
static uint64_t now_ms(struct loop *loop)
{
    struct clock before = loop->clock;
    uint64_t now;

    loop_read_clock(loop);
    now = loop->clock.mono_ms;
    loop->clock = before;
    return now;
}

void loop_wait_for_tick(struct loop *loop, int timeout)
{
    uint64_t now;
    int left;

    if (loop->mechanism->start_ticks != NULL) {
        loop->mechanism->process_events(loop, timeout);
        return;
    }
    now = now_ms(loop);
    left = now < loop->next_tick_ms ? (int)(loop->next_tick_ms - now) : 0;
    loop->mechanism->process_events(loop, timeout == -1 || timeout > left ? left : timeout);
    now = now_ms(loop);
    if (now < loop->next_tick_ms)
        return;
    loop->next_tick_ms += ((now - loop->next_tick_ms) / loop->tick_ms + 1) * loop->tick_ms;
    loop_report_own(loop, loop->ticker);
}

int loop_watch_signals(struct loop *loop)
{
    return loop_open_signal_pipe(loop);
}

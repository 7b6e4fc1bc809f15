/* SPDX-License-Identifier: BSD-2-Clause */
/* Polls, and finds out whether the processor is wanted, by the kernel's counts of involuntary
 * switches and of runnable processes, read once before a time of polling. */
#include "worker/busy_poll.h"

#include "os/process.h"
#include "process/signals.h"

#include <sched.h>
#include <unistd.h>

/* How long a worker sleeps at once after another process has wanted a processor. */
#define REST_MS 10
/* A poll takes longer than that. */
#define POLL_NS 100

void busy_poll_init(struct busy_poll *busy, int64_t us)
{
    *busy = (struct busy_poll) { .is_wanted = busy_poll_is_wanted, .load = -1 };
    if (us == 0)
        return;
    busy->ns = (uint64_t)us * 1000;
    busy->polls_most = busy->ns / POLL_NS;
    busy->switches = os_cpu_count_switches();
    busy->load = os_cpu_open_load();
    busy->processors = sysconf(_SC_NPROCESSORS_ONLN);
}

void busy_poll_done(struct busy_poll *busy)
{
    if (busy->ns != 0 && busy->load != -1)
        close(busy->load);
    busy->ns = 0;
}

bool busy_poll_is_wanted(struct busy_poll *busy, uint64_t now_ms)
{
    long switches;
    bool wanted;

    if (now_ms < busy->resume_ms)
        return true;
    switches = os_cpu_count_switches();
    wanted = switches != busy->switches;
    busy->switches = switches;
    if (!wanted && now_ms != busy->counted_ms) {
        busy->counted_ms = now_ms;
        wanted = os_cpu_count_runnable(busy->load) > busy->processors;
    }
    if (wanted)
        busy->resume_ms = now_ms + REST_MS;
    return wanted;
}

static bool loop_has_work(const struct loop *loop)
{
    return !loop_is_empty(loop, QUEUE_NORMAL) || !loop_is_empty(loop, QUEUE_ACCEPT) ||
           loop->timers.soonest <= loop->clock.mono_ms || loop->wait_error != 0 ||
           signals_state->any;
}

static uint64_t loop_now_ns(const struct loop *loop)
{
    const struct timespec *now = &loop->clock.mono;

    return (uint64_t)now->tv_sec * 1000000000 + (uint64_t)now->tv_nsec;
}

bool busy_poll(struct busy_poll *busy, struct loop *loop, int *timeout)
{
    uint64_t begun_ms = loop->clock.mono_ms, until = 0, passed;

    assert(busy->ns > 0 && *timeout != 0);
    /* with timer_resolution the clock stands still between two ticks */
    if (loop->ticker != NULL || busy->is_wanted(busy, begun_ms))
        return false;
    for (uint64_t n = 0; n < busy->polls_most; n++) {
        loop_wait(loop, 0);
        if (loop_has_work(loop))
            return true;
        if (n == 0)
            until = loop_now_ns(loop) + busy->ns;
        else if (loop_now_ns(loop) >= until)
            break;
        sched_yield();
    }
    passed = loop->clock.mono_ms - begun_ms;
    if (*timeout > 0)
        *timeout = passed < (uint64_t)*timeout ? *timeout - (int)passed : 0;
    return false;
}

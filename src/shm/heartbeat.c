/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of callbacks, logged by the master when a worker is stuck or has died, and long times. A
 * counter that has gone back makes no time. */
#include "shm/heartbeat.h"

#define LIMIT_US (HISTOGRAM_GREATEST_US - 1)

const char *const heartbeat_callback_names[CALLBACKS] = {
    [CALLBACK_OPENED] = "opened",
    [CALLBACK_DATA] = "data",
    [CALLBACK_EOF] = "eof",
    [CALLBACK_WRITABLE] = "writable",
    [CALLBACK_TIMER] = "timer",
    [CALLBACK_DRAINING] = "draining",
    [CALLBACK_MESSAGE] = "message",
    [CALLBACK_ANSWERED] = "answered",
    [CALLBACK_CLOSED] = "closed",
    [CALLBACK_DONE] = "done",
    [CALLBACK_RELEASE] = "release",
    [CALLBACK_WORKER_START] = "worker_start",
    [CALLBACK_WORKER_STOP] = "worker_stop",
    [CALLBACK_POSTED] = "posted",
    [CALLBACK_WORKER_TIMER] = "worker_ops.timer",
    [CALLBACK_WORKER_DRAINING] = "worker_ops.draining",
    [CALLBACK_WORKER_MESSAGE] = "worker_ops.message",
    [CALLBACK_WORKER_ANSWERED] = "worker_ops.answered",
    [CALLBACK_WORKER_CAME] = "worker_ops.worker_came",
    [CALLBACK_WORKER_GONE] = "worker_ops.worker_gone",
    [CALLBACK_MAP_CHANGED] = "worker_ops.map_changed",
    [CALLBACK_UNWRITABLE] = "unwritable",
    [CALLBACK_READY] = "ready",
    [CALLBACK_RESOLVED] = "resolved",
    [CALLBACK_CHOSEN] = "chosen",
    [CALLBACK_VALUE] = "value",
    [CALLBACK_FIRST_BYTE] = "first_byte",
};

void heartbeat_start(struct heartbeat *heartbeat, uint64_t stall_us)
{
    uint64_t limit_us = stall_us > 0 && stall_us < LIMIT_US ? stall_us : LIMIT_US;

    heartbeat->stall_us = stall_us;
    heartbeat->limit = UINT64_MAX;
    if (heartbeat->rate > 0)
        heartbeat->limit = ((limit_us + 1) << HEARTBEAT_TIME_BITS) / heartbeat->rate;
    heartbeat->turn_since = heartbeat_time();
}

static uint64_t to_us(const struct heartbeat *heartbeat, uint64_t time)
{
    return (int64_t)time < 0 ? 0 : ticks_to_us(time >> 16, heartbeat->rate);
}

bool heartbeat_count_otherwise(struct heartbeat *heartbeat, uint64_t now, uint64_t time)
{
    unsigned protocol = heartbeat_protocol(now);
    unsigned row = protocol < HEARTBEAT_PROTOCOLS ? protocol : HEARTBEAT_PROTOCOLS - 1;
    uint64_t us = to_us(heartbeat, time);

    if (heartbeat_callback(now) <= CALLBACK_WAIT)
        return false; /* a module has written there */
    histogram_count_any(&heartbeat->callbacks[row], us);
    if (heartbeat->stall_us == 0 || us <= heartbeat->stall_us)
        return false;
    atomic_fetch_add_explicit(&heartbeat->stalls, 1, memory_order_relaxed);
    heartbeat->stall = (struct heartbeat_stall) { heartbeat_callback(now), protocol, us };
    return true;
}

bool heartbeat_count_long_turn(struct heartbeat *heartbeat, uint64_t time)
{
    histogram_count_any(&heartbeat->turns, to_us(heartbeat, time));
    return heartbeat->stall.us > 0;
}

const char *heartbeat_stall_name(const struct heartbeat_stall *stall)
{
    const char *name =
        (unsigned)stall->callback < CALLBACKS ? heartbeat_callback_names[stall->callback] : NULL;

    return name != NULL ? name : "unknown";
}

struct heartbeat_stall heartbeat_take_stall(struct heartbeat *heartbeat)
{
    struct heartbeat_stall stall = heartbeat->stall;

    heartbeat->stall.us = 0;
    return stall;
}

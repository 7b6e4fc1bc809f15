/* SPDX-License-Identifier: BSD-2-Clause */
/* The event loop: a mechanism, the table of watched sources, queues of posted events, timers, and
 * cached time. The order of a turn is the worker's (worker/turn.c); its parts are here.
 *
 * All state is the loop's, so that two loops live in one process. An event is armed only while the
 * source has a slot of the table. */
#pragma once

#include "event/loop_queue.h"
#include "event/loop_wake.h"
#include "event/source_watch.h"

struct loop_options {
    const struct mechanism *mechanism;
    struct mechanism_values mechanism_values;
    uint32_t slots; /* the number of sources, besides the loop's own */
    size_t stride;  /* bytes of a slot: of a struct that begins with a struct source */
    const sigset_t *wait_mask;
    struct log *log;
};

/* Makes a loop; -1 after an emerg line, with nothing left to undo. */
int loop_init(struct loop *loop, const struct loop_options *options);
/* Closes a loop after all sources, except for the loop's, have been put back. */
void loop_done(struct loop *loop);
/* Asserts the rules of the whole loop between two waits: queues, sources, timers. */
void loop_check(const struct loop *loop);

/* Waits for events, has them reported, and reads the clock. `timeout` in ms; -1: for ever. */
static inline void loop_wait(struct loop *loop, int timeout)
{
    uint64_t before = loop->clock.mono_ms;

    assert(timeout >= -1);
    loop->turn++;
    debug_wait(loop, timeout);
    if (unlikely(loop->ticker != NULL)) {
        loop_wait_for_tick(loop, timeout);
    } else {
        loop->mechanism->process_events(loop, timeout);
        loop_read_clock(loop);
    }
    debug_waited(loop, timeout, before);
}

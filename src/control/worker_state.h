/* SPDX-License-Identifier: BSD-2-Clause */
/* What a worker or a helper does, as the master sees it: by its own records, by /proc, and by what
 * the worker has written to its slot, which is bounded and shown, and never relied on. Private to
 * control/. */
#pragma once

#include "control/control.h"

/* A callback, or a turn outside of callbacks, that takes longer is told of. */
#define WORKER_STUCK_MS 1000

enum worker_trouble {
    WORKER_WELL,
    WORKER_ENDED,   /* waits to be started again */
    WORKER_STOPPED, /* by a signal or a debugger */
    WORKER_STUCK,   /* in a callback, or outside of callbacks */
    WORKER_PAUSED,  /* accepts no clients for want of a descriptor or of memory */
    WORKER_FULL,    /* accepts no clients for want of a slot */
};

struct worker_state {
    enum worker_trouble trouble;
    const char *name;            /* a word or two, for the status */
    uint64_t stuck_ms;           /* with WORKER_STUCK */
    char where[DEATH_PLACE_MAX]; /* with WORKER_STUCK: "in callback \"data\" ..." */
    uint64_t drain_ms;           /* until the worker is killed; 0: there is no limit */
};

void control_worker_state(
    const struct control *control, const struct pool_worker *worker, struct worker_state *state);

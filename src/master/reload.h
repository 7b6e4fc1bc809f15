/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a reload. Its steps are in reload.c; whoever learns that one of them succeeded or
 * failed says so explicitly, nothing is inferred. */
#pragma once

#include "base/diag.h"
#include "event/timer.h"
#include "process/config_check.h"

#include <stdbool.h>
#include <stdint.h>

struct pool;

enum reload_phase {
    RELOAD_IDLE,
    RELOAD_CHECKING,  /* another process reads the configuration */
    RELOAD_PREPARING, /* the new generation sets itself up, and may still be taken back */
    RELOAD_COMMITTED, /* the new generation has the listeners, and begins to accept */
    RELOAD_PROVING,   /* the new generation serves, and must not crash at once */
    /* new workers have crashed, each one: the configuration before starts again */
    RELOAD_GOING_BACK,
};

struct reload {
    enum reload_phase phase;
    struct config_check check;
    struct timer deadline; /* deadline of the check */
    struct timers *timers;
};

/* Outcome of the latest reload. */
struct reload_status {
    bool any, ok;
    int64_t at_ms;             /* since the epoch */
    char why[DIAG_REASON_MAX]; /* why it failed */
};

void reload_init(struct reload *reload, struct timers *timers);
void reload_set_phase(struct reload *reload, enum reload_phase phase);
/* Asserts that phase, check and the pool's starting generation agree. */
void reload_check(const struct reload *reload, const struct pool *pool);
